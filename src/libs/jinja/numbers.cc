// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/numbers.h"

#include "libs/jinja/failure.h"
#include "libs/jinja/operators.h"
#include "libs/jinja/unicode.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

namespace baton::jinja {
namespace {

// Python allows single underscores between digits.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const auto digit = [&](std::size_t at) {
      return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
    };
    if (i == 0 || !digit(i - 1) || !digit(i + 1)) return std::nullopt;
  }
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return out;
}

}  // namespace

std::optional<Value> parse_integer(std::string_view text, std::int64_t base) {
  text = strip_right(strip_left(text));
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
  int radix = static_cast<int>(base);
  if (text.size() > 1 && text[0] == '0') {
    const char mark = static_cast<char>(text[1] | 0x20);
    const int marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (marked != 0 && (base == marked || base == 0)) {
      radix = marked;
      text.remove_prefix(2);
      if (text.starts_with('_')) text.remove_prefix(1);
    }
  }
  if (radix == 0) {
    radix = 10;
    if (text.size() > 1 && text[0] == '0' && text.find_first_not_of("0_") != text.npos) {
      return std::nullopt;
    }
  }
  const auto digits = without_underscores(text);
  if (!digits || digits->empty() || digits->front() == '-') return std::nullopt;
  const std::string whole = (negative ? "-" : "") + *digits;
  std::int64_t value = 0;
  const char* end = whole.data() + whole.size();
  const auto [stop, error] = std::from_chars(whole.data(), end, value, radix);
  if (stop != end) return std::nullopt;
  if (error == std::errc()) return Value(value);
  if (radix != 10) raise("an integer is too long");
  std::string kept = *digits;
  kept.erase(0, std::min(kept.find_first_not_of('0'), kept.size() - 1));
  return Value::big_integer((negative ? "-" : "") + kept);
}

std::optional<double> parse_float(std::string_view text) {
  text = strip_right(strip_left(text));
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const std::string word = lower(text);
  double value = 0;
  if (word == "inf" || word == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (word == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    const auto digits = without_underscores(text);
    if (!digits || digits->empty() || (digits->front() != '.' && !std::isdigit(digits->front()))) {
      return std::nullopt;
    }
    const char* end = digits->data() + digits->size();
    const auto [stop, error] = std::from_chars(digits->data(), end, value);
    if (stop != end) return std::nullopt;
    if (error == std::errc::result_out_of_range) value = std::strtod(digits->c_str(), nullptr);
  }
  return negative ? -value : value;
}

Value truncated(double number) {
  const double whole = std::trunc(number);
  if (std::abs(whole) < 9.2e18) return Value(static_cast<std::int64_t>(whole));
  return Value::big_integer(fmt::format("{:.0f}", whole));
}

Value rounded(const Value& number, std::int64_t digits) {
  if (is_int_like(number)) {
    if (digits >= 0) return Value(number.as_int());
    if (digits < -18) return Value(0);
    std::int64_t unit = 1;
    for (std::int64_t i = 0; i < -digits; ++i) unit *= 10;
    const std::int64_t value = number.as_int();
    std::int64_t rest = value % unit;
    if (rest < 0) rest += unit;
    const std::int64_t down = value - rest;
    const bool up = rest * 2 > unit || (rest * 2 == unit && (down / unit) % 2 != 0);
    return Value(up ? down + unit : down);
  }
  const double value = number.as_float();
  if (!std::isfinite(value) || digits > 300) return Value(value);
  if (digits < -308) return Value(0.0 * value);
  if (digits >= 0) {
    // The decimal nearest to the exact value, read back: what Python does.
    const std::string text = fmt::format("{:.{}f}", value, digits);
    return Value(std::strtod(text.c_str(), nullptr));
  }
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  return Value(std::nearbyint(value / unit) * unit);
}

}  // namespace baton::jinja
