// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/lookup.h"

#include "libs/jinja/builtins.h"
#include "libs/jinja/failure.h"
#include "libs/jinja/loop.h"
#include "libs/jinja/objects.h"
#include "libs/jinja/operators.h"
#include "libs/jinja/printing.h"
#include "libs/jinja/run.h"
#include "libs/jinja/runtime_methods.h"

#include <algorithm>
#include <array>

namespace baton::jinja {
namespace {

constexpr std::array<std::string_view, 8> kListChangers = {"append", "clear", "pop",    "reverse",
                                                           "insert", "sort",  "extend", "remove"};
constexpr std::array<std::string_view, 5> kDictChangers = {"clear", "pop", "popitem", "setdefault",
                                                           "update"};
constexpr std::array<std::string_view, 14> kInternal = {
    "__class__",  "__doc__",          "__init__",   "__eq__",     "__str__",
    "__repr__",   "__hash__",         "__dir__",    "__module__", "__new__",
    "__reduce__", "__getattribute__", "__format__", "__sizeof__"};

template <std::size_t Size>
bool among(const std::array<std::string_view, Size>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// __class__ and its like: there in Python, hidden by the sandbox.
bool is_internal_name(std::string_view name) {
  return name.starts_with("__") && among(kInternal, name);
}

Value unsafe(const Value& object, std::string_view name) {
  return Value::missing_because(fmt::format("access to attribute {} of '{}' object is unsafe.",
                                            in_quotes(name), type_name(object)));
}

const Builtin* find_method(const Value& object, std::string_view name) {
  switch (object.kind()) {
    case Kind::String:
      return find_text_method(name);
    case Kind::List:
      return find_list_method(name);
    case Kind::Tuple:
      return find_tuple_method(name);
    case Kind::Dict:
      return find_dict_method(name);
    case Kind::Loop:
      return find_loop_method(name);
    case Kind::Cycler:
      return find_cycler_method(name);
    default:
      return nullptr;
  }
}

// Position `index` counted from either end; nothing where it is out of bounds.
std::optional<std::size_t> place(std::int64_t index, std::size_t size) {
  const auto count = static_cast<std::int64_t>(size);
  if (index < 0) index += count;
  if (index < 0 || index >= count) return std::nullopt;
  return static_cast<std::size_t>(index);
}

Value character(const Value& text, std::size_t index) {
  const Text& whole = text.text();
  const std::size_t begin = whole.offset(index);
  Value value = Value::text(whole.piece(begin, whole.offset(index + 1) - begin));
  return text.is_markup() ? value.as_markup() : value;
}

// obj[key] in Python; null where that raises a TypeError or a LookupError.
const Value* subscript(const Value& object, const Value& key, Value& scratch) {
  switch (object.kind()) {
    case Kind::Dict:
      if (key.is_list() || key.is_dict()) return nullptr;
      return object.as_dict().find(key);
    case Kind::List:
    case Kind::Tuple: {
      if (!is_int_like(key)) return nullptr;
      const auto at = place(key.as_int(), object.as_list().size());
      return at ? &object.as_list()[*at] : nullptr;
    }
    case Kind::String: {
      if (!is_int_like(key)) return nullptr;
      const auto at = place(key.as_int(), object.text().length());
      if (!at) return nullptr;
      scratch = character(object, *at);
      return &scratch;
    }
    case Kind::Range: {
      const auto& range = object_as<RangeObject>(object);
      if (!is_int_like(key)) return nullptr;
      const auto at = place(key.as_int(), static_cast<std::size_t>(range.size()));
      if (!at) return nullptr;
      scratch = Value(range.at(static_cast<std::int64_t>(*at)));
      return &scratch;
    }
    default:
      return nullptr;
  }
}

struct Bounds {
  std::int64_t start;
  std::int64_t stop;
  std::int64_t step;
  std::size_t count() const {
    if (step > 0) {
      return start < stop ? static_cast<std::size_t>((stop - start - 1) / step + 1) : 0;
    }
    return stop < start ? static_cast<std::size_t>((start - stop - 1) / -step + 1) : 0;
  }
};

std::int64_t slice_index(const Value& value) {
  if (is_int_like(value)) return value.as_int();
  if (value.is_undefined()) raise("{}", value.undefined_message());
  raise("slice indices must be integers or None or have an __index__ method");
}

Bounds slice_bounds(std::size_t size, const Value& start, const Value& stop, const Value& step) {
  const auto absent = [](const Value& value) { return value.is_unset() || value.is_none(); };
  const auto length = static_cast<std::int64_t>(size);
  // A step beyond the length takes one item, whatever it is.
  std::int64_t by = absent(step) ? 1 : slice_index(step);
  if (by == 0) raise("slice step cannot be zero");
  by = std::clamp(by, -length - 1, length + 1);
  const auto bound = [&](const Value& value, std::int64_t fallback) {
    if (absent(value)) return fallback;
    std::int64_t at = slice_index(value);
    if (at < 0) at = at < -length ? -1 : at + length;
    const std::int64_t low = by < 0 ? -1 : 0;
    const std::int64_t high = by < 0 ? length - 1 : length;
    return std::clamp(at, low, std::max(high, low));
  };
  return {.start = bound(start, by < 0 ? length - 1 : 0),
          .stop = bound(stop, by < 0 ? -1 : length),
          .step = by};
}

Value slice_text(Run& run, const Value& object, const Bounds& bounds) {
  const Text& whole = object.text();
  if (bounds.step == 1) {
    if (bounds.count() == 0) return Value("");
    const std::size_t begin = whole.offset(static_cast<std::size_t>(bounds.start));
    const std::size_t end = whole.offset(static_cast<std::size_t>(bounds.stop));
    run.charge(end - begin < 64 ? end - begin : 64);
    return Value::text(whole.piece(begin, end - begin));
  }
  std::string out;
  std::vector<std::size_t> offsets;  // of every character, so that picking takes linear time
  if (!whole.ascii()) {
    for (std::size_t i = 0; i < whole.view().size(); ++i) {
      if ((static_cast<unsigned char>(whole.view()[i]) & 0xC0U) != 0x80U) offsets.push_back(i);
    }
    offsets.push_back(whole.view().size());
  }
  std::int64_t at = bounds.start;
  for (std::size_t i = 0; i < bounds.count(); ++i, at += bounds.step) {
    const auto index = static_cast<std::size_t>(at);
    if (offsets.empty()) {
      out += whole.view()[index];
    } else {
      out += whole.view().substr(offsets[index], offsets[index + 1] - offsets[index]);
    }
  }
  return run.text(std::move(out));
}

}  // namespace

bool has_dict_attribute(std::string_view name) {
  return find_dict_method(name) != nullptr || among(kDictChangers, name) || is_internal_name(name);
}

Value own_attribute(Run& run, const Value& object, const Value& name) {
  const std::string_view wanted = name.as_string();
  if (object.kind() == Kind::Namespace) {
    const Value* found = object_as<NamespaceObject>(object).attributes.find(wanted);
    return found != nullptr ? *found : Value();
  }
  if (const Builtin* method = find_method(object, wanted)) {
    return run.bounded(Value(Kind::Function, make<BoundBuiltin>(*method, object)));
  }
  if (object.is_list() && among(kListChangers, wanted)) return unsafe(object, wanted);
  if (object.is_dict() && among(kDictChangers, wanted)) return unsafe(object, wanted);
  if (is_internal_name(wanted)) return unsafe(object, wanted);
  switch (object.kind()) {
    case Kind::Loop:
      return object_as<LoopObject>(object).attribute(wanted);
    case Kind::Cycler:
      if (wanted == "current") {
        const auto& cycler = object_as<CyclerObject>(object);
        return cycler.items[cycler.position];
      }
      if (wanted == "items") return run.tuple(object_as<CyclerObject>(object).items);
      return Value();
    case Kind::Tuple:
      if (object_as<ListObject>(object).group) {
        if (wanted == "grouper") return object.as_list()[0];
        if (wanted == "list") return object.as_list()[1];
      }
      return Value();
    case Kind::Function:
      return function_attribute(object, wanted);
    default:
      return Value();
  }
}

const Value& find_item(Run& run, const Value& object, const Value& key, Value& scratch) {
  if (object.is_undefined()) raise("{}", object.undefined_message());
  if (const Value* found = subscript(object, key, scratch)) return *found;
  if (key.is_string()) {
    scratch = own_attribute(run, object, key);
    if (!scratch.is_unset()) return scratch;
  }
  scratch = Value::missing(key, object.kind());
  return scratch;
}

const Value& find_attribute(Run& run, const Value& object, const Value& name, Value& scratch) {
  if (object.is_undefined()) raise("{}", object.undefined_message());
  scratch = own_attribute(run, object, name);
  if (!scratch.is_unset()) return scratch;
  if (const Value* found = subscript(object, name, scratch)) return *found;
  scratch = Value::missing(name, object.kind());
  return scratch;
}

Value slice_of(Run& run, const Value& object, const Value& start, const Value& stop,
               const Value& step) {
  switch (object.kind()) {
    case Kind::Undefined:
      raise("{}", object.undefined_message());
    case Kind::String: {
      const auto bounds = slice_bounds(object.text().length(), start, stop, step);
      Value value = slice_text(run, object, bounds);
      return object.is_markup() ? value.as_markup() : value;
    }
    case Kind::List:
    case Kind::Tuple: {
      const List& from = object.as_list();
      const auto bounds = slice_bounds(from.size(), start, stop, step);
      List items;
      items.reserve(bounds.count());
      std::int64_t at = bounds.start;
      for (std::size_t i = 0; i < bounds.count(); ++i, at += bounds.step) {
        items.push_back(from[static_cast<std::size_t>(at)]);
      }
      return object.is_list() ? run.list(std::move(items)) : run.tuple(std::move(items));
    }
    case Kind::Range: {
      const auto& range = object_as<RangeObject>(object);
      const auto bounds = slice_bounds(static_cast<std::size_t>(range.size()), start, stop, step);
      return Value(
          Kind::Range,
          make<RangeObject>(range.at(bounds.start), range.at(bounds.stop),
                            static_cast<std::int64_t>(static_cast<std::uint64_t>(range.step) *
                                                      static_cast<std::uint64_t>(bounds.step))));
    }
    case Kind::Dict:
      raise("unhashable type: 'slice'");
    default:
      raise("'{}' object is not subscriptable", type_name(object));
  }
}

Value call_value(Run& run, const Value& callee, Arguments& arguments) {
  run.step();
  switch (callee.kind()) {
    case Kind::Function:
      return object_as<FunctionObject>(callee).call(run, arguments);
    case Kind::Joiner:
      return call_joiner(callee, arguments);
    case Kind::Loop:
      return call_loop(run, callee, arguments);
    case Kind::Undefined:
      raise("{}", callee.undefined_message());
    default:
      raise("'{}' object is not callable", type_name(callee));
  }
}

}  // namespace baton::jinja
