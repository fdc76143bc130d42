// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/builtins.h"
#include "libs/jinja/failure.h"
#include "libs/jinja/lookup.h"
#include "libs/jinja/numbers.h"
#include "libs/jinja/operators.h"
#include "libs/jinja/printing.h"
#include "libs/jinja/run.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace baton::jinja {
namespace {

Value absolute(Run&, const Value& self, Arguments&) {
  if (self.kind() == Kind::Float) return Value(std::abs(self.as_float()));
  if (is_int_like(self)) return self.as_int() < 0 ? negated(self) : Value(self.as_int());
  if (self.kind() == Kind::BigInt) return self.as_string().starts_with('-') ? negated(self) : self;
  raise("bad operand type for abs(): '{}'", type_name(self));
}

Value attribute(Run& run, const Value& self, Arguments& arguments) {
  if (self.is_undefined()) raise("{}", self.undefined_message());
  require_text(arguments[0]);
  Value found = own_attribute(run, self, arguments[0]);
  return found.is_unset() ? Value::missing(arguments[0], self.kind()) : found;
}

Value fallback(Run&, const Value& self, Arguments& arguments) {
  const bool use = self.is_undefined() || (arguments.truth(1, false) && !truthy(self));
  if (!use) return self;
  return arguments.given(0) ? arguments[0] : Value("");
}

Value items(Run& run, const Value& self, Arguments&) {
  if (self.is_undefined()) return run.iterator({});
  if (!self.is_dict()) raise("Can only get item pairs from a mapping.");
  List pairs;
  for (const auto& [key, value] : self.as_dict()) pairs.push_back(run.tuple({key, value}));
  return run.iterator(std::move(pairs));
}

Value to_integer(Run&, const Value& self, Arguments& arguments) {
  const Value otherwise = arguments.given(0) ? arguments[0] : Value(0);
  const std::int64_t base = arguments.integer(1, 10);
  if (self.is_string()) {
    if (auto number = parse_integer(self.as_string(), base)) return *number;
    const auto number = parse_float(self.as_string());
    return number && std::isfinite(*number) ? truncated(*number) : otherwise;
  }
  if (is_int_like(self)) return Value(self.as_int());
  if (self.kind() == Kind::BigInt) return self;
  if (self.kind() == Kind::Float) {
    if (std::isinf(self.as_float())) raise("cannot convert float infinity to integer");
    return std::isnan(self.as_float()) ? otherwise : truncated(self.as_float());
  }
  if (self.is_undefined()) raise("{}", self.undefined_message());
  return otherwise;
}

Value to_float(Run&, const Value& self, Arguments& arguments) {
  const Value otherwise = arguments.given(0) ? arguments[0] : Value(0.0);
  if (is_number(self)) return Value(number_as_float(self));
  if (self.is_undefined()) raise("{}", self.undefined_message());
  if (self.is_string() || self.kind() == Kind::BigInt) {
    const auto number = parse_float(self.as_string());
    return number ? Value(*number) : otherwise;
  }
  return otherwise;
}

Value round(Run&, const Value& self, Arguments& arguments) {
  const std::int64_t precision = arguments.integer(0, 0);
  const std::string method = arguments.given(1) ? str(arguments[1]) : "common";
  if (method != "common" && method != "ceil" && method != "floor") {
    raise("method must be common, ceil or floor");
  }
  if (self.is_undefined()) raise("{}", self.undefined_message());
  if (self.kind() == Kind::BigInt && precision >= 0 && method == "common") return self;
  if (!is_number(self)) raise("type {} doesn't define __round__ method", type_name(self));
  if (method == "common") return rounded(self, precision);
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = number_as_float(self) * scale;
  return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

// json.dumps with the parameters that transformers gives it.
Value to_json(Run& run, const Value& self, Arguments& arguments) {
  JsonStyle style;
  style.ascii = arguments.truth(0, false);
  style.sorted = arguments.truth(3, false);
  if (arguments.has(1)) {
    style.indented = true;
    style.item_separator = ",";
    if (arguments[1].is_string()) {
      style.indent = arguments[1].as_string();
    } else {
      const std::int64_t width = std::clamp<std::int64_t>(require_int(arguments[1]), 0, 1000);
      style.indent.assign(static_cast<std::size_t>(width), ' ');
    }
  }
  if (arguments.has(2)) {
    const Value& pair = arguments[2];
    const bool two = (pair.is_list() || pair.kind() == Kind::Tuple) && pair.as_list().size() == 2;
    if (!two) raise("separators must be a pair of strings");
    style.item_separator = require_text(pair.as_list()[0]);
    style.key_separator = require_text(pair.as_list()[1]);
  }
  return run.text(json_dumps(self, style));
}

constexpr auto kValueFilters = std::to_array<Builtin>({
    {"abs", absolute, {}},
    {"attr", attribute, {"name"}},
    {"d", fallback, {"?default_value", "?boolean"}},
    {"default", fallback, {"?default_value", "?boolean"}},
    {"float", to_float, {"?default"}},
    {"int", to_integer, {"?default", "?base"}},
    {"items", items, {}},
    {"round", round, {"?precision", "?method"}},
    {"tojson", to_json, {"?ensure_ascii", "?indent", "?separators", "?sort_keys"}},
});

}  // namespace

std::span<const Builtin> value_filters() { return kValueFilters; }

}  // namespace baton::jinja
