// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/builtins.h"

#include <chrono>
#include <string>
#include <string_view>

namespace baton::jinja {

// "%s and %d" % values.
Value percent_format(Run& run, const Value& format, const Value& values);
// "{} and {name}".format(…).
Value brace_format(Run& run, const Value& format, Arguments& arguments);
// datetime.now().strftime(format), in the process's time zone.
std::string format_time(std::chrono::system_clock::time_point when, const std::string& format);

// How a number or a text is laid out: the part behind the colon of a brace, or behind a percent.
struct Layout {
  char fill = ' ';
  char align = '\0';  // < > ^ =
  char sign = '-';    // + - or a space
  bool alternate = false;
  bool zero = false;
  char grouping = '\0';  // , or _
  int width = 0;
  int precision = -1;
  char type = '\0';
};
std::string format_integer(std::int64_t value, const Layout& layout);
std::string format_float(double value, const Layout& layout);
std::string format_text(std::string_view value, const Layout& layout);

}  // namespace baton::jinja
