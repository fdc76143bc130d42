// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/builtins.h"
#include "libs/jinja/cursor.h"
#include "libs/jinja/failure.h"
#include "libs/jinja/operators.h"
#include "libs/jinja/printing.h"
#include "libs/jinja/run.h"
#include "libs/jinja/unicode.h"

#include <algorithm>
#include <array>

namespace baton::jinja {
namespace {

template <Kind... kinds>
Value is_kind(Run&, const Value& self, Arguments&) {
  return Value(((self.kind() == kinds) || ...));
}

template <bool wanted>
Value is_bool(Run&, const Value& self, Arguments&) {
  return Value(self.kind() == Kind::Bool && self.as_bool() == wanted);
}

template <Comparison how>
Value compares(Run&, const Value& self, Arguments& arguments) {
  return Value(compare(how, self, arguments[0]));
}

Value is_defined(Run&, const Value& self, Arguments&) { return Value(!self.is_undefined()); }

template <std::int64_t rest>
Value has_parity(Run& run, const Value& self, Arguments&) {
  return Value(equal(arithmetic(run, Arithmetic::Modulo, self, Value(2)), Value(rest)));
}

Value divisible_by(Run& run, const Value& self, Arguments& arguments) {
  return Value(equal(arithmetic(run, Arithmetic::Modulo, self, arguments[0]), Value(0)));
}

Value is_callable(Run&, const Value& self, Arguments&) {
  const Kind kind = self.kind();
  // Loops, joiners and even undefined values have a __call__.
  return Value(kind == Kind::Function || kind == Kind::Loop || kind == Kind::Joiner ||
               kind == Kind::Undefined);
}

Value is_escaped(Run&, const Value& self, Arguments&) { return Value(self.is_markup()); }

Value is_iterable(Run&, const Value& self, Arguments&) { return Value(Cursor::walks(self)); }

Value is_in(Run& run, const Value& self, Arguments& arguments) {
  return Value(contains(run, arguments[0], self));
}

Value is_sequence(Run&, const Value& self, Arguments&) {
  const Kind kind = self.kind();
  return Value(kind == Kind::String || kind == Kind::List || kind == Kind::Tuple ||
               kind == Kind::Dict || kind == Kind::Range || kind == Kind::Undefined);
}

Value same_as(Run&, const Value& self, Arguments& arguments) {
  const Value& other = arguments[0];
  if (self.kind() != other.kind()) return Value(false);
  switch (self.kind()) {
    case Kind::None:
      return Value(true);
    case Kind::Bool:
      return Value(self.as_int() == other.as_int());
    case Kind::Int:
      // Python keeps one object for each small number.
      return Value(self.as_int() == other.as_int() && self.as_int() >= -5 && self.as_int() <= 256);
    case Kind::Float:
    case Kind::Undefined:
      return Value(false);
    default:
      return Value(self.object() == other.object());
  }
}

Value is_lower_case(Run&, const Value& self, Arguments&) { return Value(all_lower(str(self))); }

Value is_upper_case(Run&, const Value& self, Arguments&) { return Value(all_upper(str(self))); }

Value is_filter(Run&, const Value& self, Arguments&) {
  require_hashable(self);
  return Value(self.is_string() && find_filter(self.as_string()) != nullptr);
}

Value is_test(Run&, const Value& self, Arguments&) {
  require_hashable(self);
  return Value(self.is_string() && find_test(self.as_string()) != nullptr);
}

constexpr auto kTests = std::to_array<Builtin>({
    {"!=", compares<Comparison::NotEqual>, {"b"}},
    {"<", compares<Comparison::Less>, {"b"}},
    {"<=", compares<Comparison::LessEqual>, {"b"}},
    {"==", compares<Comparison::Equal>, {"b"}},
    {">", compares<Comparison::Greater>, {"b"}},
    {">=", compares<Comparison::GreaterEqual>, {"b"}},
    {"boolean", is_kind<Kind::Bool>, {}},
    {"callable", is_callable, {}},
    {"defined", is_defined, {}},
    {"divisibleby", divisible_by, {"num"}},
    {"eq", compares<Comparison::Equal>, {"b"}},
    {"equalto", compares<Comparison::Equal>, {"b"}},
    {"escaped", is_escaped, {}},
    {"even", has_parity<0>, {}},
    {"false", is_bool<false>, {}},
    {"filter", is_filter, {}},
    {"float", is_kind<Kind::Float>, {}},
    {"ge", compares<Comparison::GreaterEqual>, {"b"}},
    {"greaterthan", compares<Comparison::Greater>, {"b"}},
    {"gt", compares<Comparison::Greater>, {"b"}},
    {"in", is_in, {"seq"}},
    {"integer", is_kind<Kind::Int, Kind::BigInt>, {}},
    {"iterable", is_iterable, {}},
    {"le", compares<Comparison::LessEqual>, {"b"}},
    {"lessthan", compares<Comparison::Less>, {"b"}},
    {"lower", is_lower_case, {}},
    {"lt", compares<Comparison::Less>, {"b"}},
    {"mapping", is_kind<Kind::Dict>, {}},
    {"ne", compares<Comparison::NotEqual>, {"b"}},
    {"none", is_kind<Kind::None>, {}},
    {"number", is_kind<Kind::Bool, Kind::Int, Kind::BigInt, Kind::Float>, {}},
    {"odd", has_parity<1>, {}},
    {"sameas", same_as, {"other"}},
    {"sequence", is_sequence, {}},
    {"string", is_kind<Kind::String>, {}},
    {"test", is_test, {}},
    {"true", is_bool<true>, {}},
    {"undefined", is_kind<Kind::Undefined>, {}},
    {"upper", is_upper_case, {}},
});

}  // namespace

const Builtin* find_test(std::string_view name) {
  const auto* at = std::ranges::find(kTests, name, &Builtin::name);
  return at != kTests.end() ? at : nullptr;
}

const Builtin* find_filter(std::string_view name) {
  for (const auto table :
       {text_filters(), sequence_filters(), selection_filters(), value_filters()}) {
    const auto at = std::ranges::find(table, name, &Builtin::name);
    if (at != table.end()) return &*at;
  }
  return nullptr;
}

}  // namespace baton::jinja
