// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/failure.h"
#include "libs/jinja/formatting.h"
#include "libs/jinja/printing.h"
#include "libs/jinja/unicode.h"

#include <array>
#include <charconv>
#include <cmath>
#include <ctime>
#include <vector>

namespace baton::jinja {
namespace {

constexpr int kMaxWidth = 100'000;

std::string grouped(const std::string& digits, char mark) {
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0) out += mark;
    out += digits[i];
  }
  return out;
}

std::string laid_out(std::string_view prefix, std::string_view body, const Layout& layout,
                     char usual_align) {
  if (layout.width > kMaxWidth || layout.precision > kMaxWidth) raise("a format is too wide");
  const auto length = static_cast<int>(count_code_points(prefix) + count_code_points(body));
  const std::size_t missing =
      layout.width > length ? static_cast<std::size_t>(layout.width - length) : 0;
  const char align = layout.align != '\0' ? layout.align : usual_align;
  std::string out;
  switch (align) {
    case '=':
      out.append(prefix).append(missing, layout.fill).append(body);
      break;
    case '<':
      out.append(prefix).append(body).append(missing, layout.fill);
      break;
    case '^':
      out.append(missing / 2, layout.fill).append(prefix).append(body);
      out.append(missing - missing / 2, layout.fill);
      break;
    default:
      out.append(missing, layout.fill).append(prefix).append(body);
      break;
  }
  return out;
}

std::string sign_of(bool negative, const Layout& layout) {
  if (negative) return "-";
  return layout.sign == '-' ? "" : std::string(1, layout.sign);
}

std::string shown(double value, const Layout& layout) {
  std::array<char, 512> buffer{};
  const int precision = layout.precision < 0 ? 6 : layout.precision;
  if (precision > 300) raise("a format is too precise");
  const std::array<char, 6> format = {'%',
                                      layout.alternate ? '#' : '.',
                                      layout.alternate ? '.' : '*',
                                      layout.alternate ? '*' : layout.type,
                                      layout.alternate ? layout.type : '\0',
                                      '\0'};
  const int size = std::snprintf(buffer.data(), buffer.size(), format.data(), precision, value);
  if (size < 0 || static_cast<std::size_t>(size) >= buffer.size()) {
    raise("a number is too long to be formatted");
  }
  return {buffer.data(), static_cast<std::size_t>(size)};
}

}  // namespace

std::string format_integer(std::int64_t value, const Layout& layout) {
  const bool negative = value < 0;
  const auto magnitude =
      negative ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  const char type = layout.type == '\0' ? 'd' : layout.type;
  std::string digits;
  std::string prefix = sign_of(negative, layout);
  switch (type) {
    case 'x':
      digits = fmt::format("{:x}", magnitude);
      break;
    case 'X':
      digits = fmt::format("{:X}", magnitude);
      break;
    case 'o':
      digits = fmt::format("{:o}", magnitude);
      break;
    case 'b':
      digits = fmt::format("{:b}", magnitude);
      break;
    default:
      digits = fmt::format("{}", magnitude);
      break;
  }
  if (layout.alternate && type != 'd') prefix += std::string("0") + type;
  if (layout.grouping != '\0') digits = grouped(digits, layout.grouping);
  return laid_out(prefix, digits, layout, '>');
}

std::string format_float(double value, const Layout& layout) {
  const bool negative = std::signbit(value) && !std::isnan(value);
  const double magnitude = std::abs(value);
  Layout inner = layout;
  std::string body;
  if (layout.type == '%') {
    inner.type = 'f';
    body = shown(magnitude * 100, inner) + "%";
  } else if (layout.type == '\0') {
    if (layout.precision < 0) {
      body = float_repr(magnitude);
    } else {
      inner.type = 'g';
      body = shown(magnitude, inner);
      if (body.find_first_of(".en") == body.npos) body += ".0";
    }
  } else {
    body = shown(magnitude, inner);
  }
  if (layout.grouping != '\0') {
    const std::size_t whole = body.find_first_not_of("0123456789");
    body = grouped(body.substr(0, whole), layout.grouping) +
           (whole == body.npos ? "" : body.substr(whole));
  }
  return laid_out(sign_of(negative, layout), body, layout, '>');
}

std::string format_text(std::string_view value, const Layout& layout) {
  if (layout.precision >= 0 &&
      count_code_points(value) > static_cast<std::size_t>(layout.precision)) {
    value = value.substr(0, code_point_offset(value, static_cast<std::size_t>(layout.precision)));
  }
  return laid_out("", value, layout, '<');
}

std::string format_time(std::chrono::system_clock::time_point when, const std::string& format) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(when);
  std::tm local{};
  localtime_r(&seconds, &local);
  // %f is Python's own: microseconds.
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(
                          when - std::chrono::floor<std::chrono::seconds>(when))
                          .count();
  std::string wanted;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      wanted += format[i];
      continue;
    }
    const char what = format[++i];
    if (what == 'f') {
      wanted += fmt::format("{:06}", micros);
    } else if (what != 'z' && what != 'Z') {  // datetime.now() has no zone
      wanted += {'%', what};
    }
  }
  if (wanted.empty()) return wanted;
  std::vector<char> buffer(std::max<std::size_t>(256, wanted.size() * 16));
  const std::size_t size = std::strftime(buffer.data(), buffer.size(), wanted.c_str(), &local);
  return {buffer.data(), size};
}

}  // namespace baton::jinja
