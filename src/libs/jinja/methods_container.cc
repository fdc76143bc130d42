// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/builtins.h"
#include "libs/jinja/failure.h"
#include "libs/jinja/operators.h"
#include "libs/jinja/printing.h"
#include "libs/jinja/run.h"
#include "libs/jinja/unicode.h"

#include <algorithm>
#include <array>

namespace baton::jinja {
namespace {

template <bool (*holds)(char32_t)>
Value all_are(Run&, const Value& self, Arguments&) {
  std::string_view rest = self.as_string();
  if (rest.empty()) return Value(false);
  while (!rest.empty()) {
    if (!holds(take_code_point(rest))) return Value(false);
  }
  return Value(true);
}

bool is_alphanumeric(char32_t c) {
  return is_alpha(c) || is_decimal(c) || is_digit(c) || is_numeric(c);
}

Value is_upper_text(Run&, const Value& self, Arguments&) {
  return Value(all_upper(self.as_string()));
}
Value is_lower_text(Run&, const Value& self, Arguments&) {
  return Value(all_lower(self.as_string()));
}

Value is_ascii(Run&, const Value& self, Arguments&) { return Value(self.text().ascii()); }

constexpr auto kPredicates = std::to_array<Builtin>({
    {"isalnum", all_are<is_alphanumeric>, {}},
    {"isalpha", all_are<is_alpha>, {}},
    {"isascii", is_ascii, {}},
    {"isdecimal", all_are<is_decimal>, {}},
    {"isdigit", all_are<is_digit>, {}},
    {"islower", is_lower_text, {}},
    {"isnumeric", all_are<is_numeric>, {}},
    {"isspace", all_are<is_space>, {}},
    {"isupper", is_upper_text, {}},
});

Value list_index(Run& run, const Value& self, Arguments& arguments) {
  const List& items = self.as_list();
  const auto length = static_cast<std::int64_t>(items.size());
  const auto bound = [&](std::size_t index, std::int64_t fallback) {
    const std::int64_t at = arguments.integer(index, fallback);
    return at < 0 ? std::max<std::int64_t>(at + length, 0) : std::min(at, length);
  };
  run.step(items.size() / 16);
  const std::int64_t stop = bound(2, length);
  for (std::int64_t i = bound(1, 0); i < stop; ++i) {
    if (equal(items[static_cast<std::size_t>(i)], arguments[0])) return Value(i);
  }
  raise("{} is not in list", repr(arguments[0]));
}

Value list_count(Run& run, const Value& self, Arguments& arguments) {
  run.step(self.as_list().size() / 16);
  return Value(std::ranges::count_if(self.as_list(),
                                     [&](const Value& item) { return equal(item, arguments[0]); }));
}

Value copy(Run&, const Value& self, Arguments&) { return self; }

constexpr auto kListMethods = std::to_array<Builtin>({
    {"copy", copy, {}},
    {"count", list_count, {"value"}},
    {"index", list_index, {"value", "?start", "?stop"}},
});

constexpr auto kTupleMethods = std::to_array<Builtin>({
    {"count", list_count, {"value"}},
    {"index", list_index, {"value", "?start", "?stop"}},
});

Value dict_get(Run&, const Value& self, Arguments& arguments) {
  require_hashable(arguments[0]);
  if (const Value* found = self.as_dict().find(arguments[0])) return *found;
  return arguments.given(1) ? arguments[1] : Value::none();
}

template <DictViewObject::Part part>
Value dict_view(Run& run, const Value& self, Arguments&) {
  return run.bounded(Value(Kind::DictView, make<DictViewObject>(self, part)));
}

constexpr auto kDictMethods = std::to_array<Builtin>({
    {"copy", copy, {}},
    {"get", dict_get, {"key", "?default"}},
    {"items", dict_view<DictViewObject::Part::Items>, {}},
    {"keys", dict_view<DictViewObject::Part::Keys>, {}},
    {"values", dict_view<DictViewObject::Part::Values>, {}},
});

const Builtin* find(std::span<const Builtin> table, std::string_view name) {
  const auto at = std::ranges::find(table, name, &Builtin::name);
  return at != table.end() ? &*at : nullptr;
}

}  // namespace

const Builtin* find_text_method(std::string_view name) {
  const Builtin* method = find(text_methods(), name);
  return method != nullptr ? method : find(kPredicates, name);
}

const Builtin* find_list_method(std::string_view name) { return find(kListMethods, name); }
const Builtin* find_tuple_method(std::string_view name) { return find(kTupleMethods, name); }
const Builtin* find_dict_method(std::string_view name) { return find(kDictMethods, name); }

}  // namespace baton::jinja
