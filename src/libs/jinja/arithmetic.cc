// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/failure.h"
#include "libs/jinja/formatting.h"
#include "libs/jinja/operators.h"
#include "libs/jinja/printing.h"
#include "libs/jinja/run.h"

#include <cmath>
#include <limits>

namespace baton::jinja {
namespace {

[[noreturn]] void too_large() { raise("the result is too large for an integer of 64 bits"); }

std::string_view symbol(Arithmetic how) {
  switch (how) {
    case Arithmetic::Add:
      return "+";
    case Arithmetic::Subtract:
      return "-";
    case Arithmetic::Multiply:
      return "*";
    case Arithmetic::Divide:
      return "/";
    case Arithmetic::FloorDivide:
      return "//";
    case Arithmetic::Modulo:
      return "%";
    case Arithmetic::Power:
      return "** or pow()";
  }
  return "?";
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == -1) {
    std::int64_t result = 0;
    if (__builtin_sub_overflow(std::int64_t{0}, a, &result)) too_large();
    return result;
  }
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

double float_modulo(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  return rest == 0 ? std::copysign(0.0, b) : rest;
}

double float_floor_divide(double a, double b) {
  // Like Python: the quotient that matches the remainder above, not floor(a / b).
  const double rest = float_modulo(a, b);
  const double quotient = (a - rest) / b;
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

Value integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) raise("0.0 cannot be raised to a negative power");
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  std::int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) too_large();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) too_large();
  }
  return Value(result);
}

Value integer_arithmetic(Arithmetic how, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (how) {
    case Arithmetic::Add:
      if (__builtin_add_overflow(a, b, &result)) too_large();
      return Value(result);
    case Arithmetic::Subtract:
      if (__builtin_sub_overflow(a, b, &result)) too_large();
      return Value(result);
    case Arithmetic::Multiply:
      if (__builtin_mul_overflow(a, b, &result)) too_large();
      return Value(result);
    case Arithmetic::Divide:
      if (b == 0) raise("division by zero");
      return Value(static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)));
    case Arithmetic::FloorDivide:
      if (b == 0) raise("integer division or modulo by zero");
      return Value(floor_divide(a, b));
    case Arithmetic::Modulo:
      if (b == 0) raise("integer modulo by zero");
      return Value(b == -1 ? 0 : a - b * floor_divide(a, b));
    case Arithmetic::Power:
      return integer_power(a, b);
  }
  return Value();
}

Value float_arithmetic(Arithmetic how, double a, double b) {
  switch (how) {
    case Arithmetic::Add:
      return Value(a + b);
    case Arithmetic::Subtract:
      return Value(a - b);
    case Arithmetic::Multiply:
      return Value(a * b);
    case Arithmetic::Divide:
      if (b == 0) raise("float division by zero");
      return Value(a / b);
    case Arithmetic::FloorDivide:
      if (b == 0) raise("float floor division by zero");
      return Value(float_floor_divide(a, b));
    case Arithmetic::Modulo:
      if (b == 0) raise("float modulo");
      return Value(float_modulo(a, b));
    case Arithmetic::Power: {
      if (a == 0 && b < 0) raise("0.0 cannot be raised to a negative power");
      const double result = std::pow(a, b);
      if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) {
        raise("complex numbers are not supported");
      }
      if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
        raise("(34, 'Numerical result out of range')");
      }
      return Value(result);
    }
  }
  return Value();
}

bool is_any_number(const Value& value) { return is_number(value) || value.kind() == Kind::BigInt; }

bool is_sequence(const Value& value) {
  return value.is_string() || value.is_list() || value.kind() == Kind::Tuple;
}

Value joined_lists(Run& run, const Value& a, const Value& b) {
  List items;
  items.reserve(a.as_list().size() + b.as_list().size());
  items.insert(items.end(), a.as_list().begin(), a.as_list().end());
  items.insert(items.end(), b.as_list().begin(), b.as_list().end());
  return a.is_list() ? run.list(std::move(items)) : run.tuple(std::move(items));
}

}  // namespace

Value concatenated(Run& run, const Value& a, const Value& b) {
  const bool markup = a.is_markup() || b.is_markup();
  const auto part = [&](const Value& value) {
    return markup && !value.is_markup() ? escape_html(value.as_string()) : std::string();
  };
  const std::string escaped_a = part(a);
  const std::string escaped_b = part(b);
  const std::string_view left = markup && !a.is_markup() ? escaped_a : a.as_string();
  const std::string_view right = markup && !b.is_markup() ? escaped_b : b.as_string();
  if (!markup && left.empty()) return b;
  if (!markup && right.empty()) return a;
  std::string out;
  out.reserve(left.size() + right.size());
  out += left;
  out += right;
  Value value = run.text(std::move(out));
  return markup ? value.as_markup() : value;
}

Value repeated(Run& run, const Value& sequence, std::int64_t times) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
  if (sequence.is_string()) {
    const std::string_view unit = sequence.as_string();
    if (count != 0 && unit.size() > std::numeric_limits<std::uint32_t>::max() / count) {
      raise("the repeated string is too long");
    }
    run.charge(unit.size() * count);
    std::string out;
    out.reserve(unit.size() * count);
    for (std::size_t i = 0; i < count; ++i) out += unit;
    Value value(std::move(out));
    return sequence.is_markup() ? value.as_markup() : value;
  }
  const List& unit = sequence.as_list();
  if (count != 0 && unit.size() > std::numeric_limits<std::uint32_t>::max() / count) {
    raise("the repeated list is too long");
  }
  run.charge(unit.size() * count * sizeof(Value));
  List items;
  items.reserve(unit.size() * count);
  for (std::size_t i = 0; i < count; ++i) items.insert(items.end(), unit.begin(), unit.end());
  return sequence.is_list() ? run.list(std::move(items)) : run.tuple(std::move(items));
}

Value arithmetic(Run& run, Arithmetic how, const Value& a, const Value& b) {
  if (is_int_like(a) && is_int_like(b)) return integer_arithmetic(how, a.as_int(), b.as_int());
  const bool some_float = a.kind() == Kind::Float || b.kind() == Kind::Float;
  if (some_float && is_any_number(a) && is_any_number(b)) {
    return float_arithmetic(how, number_as_float(a), number_as_float(b));
  }
  if (how == Arithmetic::Modulo && a.is_string()) return percent_format(run, a, b);
  for (const Value* value : {&a, &b}) {
    if (value->is_undefined()) raise("{}", value->undefined_message());
  }
  if (how == Arithmetic::Add && a.kind() == b.kind()) {
    if (a.is_string()) return concatenated(run, a, b);
    if (a.is_list() || a.kind() == Kind::Tuple) return joined_lists(run, a, b);
  }
  if (how == Arithmetic::Multiply) {
    if (is_sequence(a) && is_int_like(b)) return repeated(run, a, b.as_int());
    if (is_int_like(a) && is_sequence(b)) return repeated(run, b, a.as_int());
    if (is_sequence(a)) {
      raise("can't multiply sequence by non-int of type '{}'", type_name(b));
    }
  }
  if (how == Arithmetic::Add && is_sequence(a)) {
    raise("can only concatenate {} (not \"{}\") to {}", type_name(a), type_name(b), type_name(a));
  }
  if (a.kind() == Kind::BigInt || b.kind() == Kind::BigInt) too_large();
  raise("unsupported operand type(s) for {}: '{}' and '{}'", symbol(how), type_name(a),
        type_name(b));
}

Value negated(const Value& value) {
  if (is_int_like(value)) return integer_arithmetic(Arithmetic::Subtract, 0, value.as_int());
  if (value.kind() == Kind::Float) return Value(-value.as_float());
  if (value.is_undefined()) raise("{}", value.undefined_message());
  if (value.kind() == Kind::BigInt) {
    const std::string_view digits = value.as_string();
    return Value::big_integer(digits.starts_with('-') ? std::string(digits.substr(1))
                                                      : '-' + std::string(digits));
  }
  raise("bad operand type for unary -: '{}'", type_name(value));
}

Value positive(const Value& value) {
  if (is_int_like(value)) return Value(value.as_int());
  if (value.kind() == Kind::Float || value.kind() == Kind::BigInt) return value;
  if (value.is_undefined()) raise("{}", value.undefined_message());
  raise("bad operand type for unary +: '{}'", type_name(value));
}

}  // namespace baton::jinja
