// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/value.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace baton::jinja {

// Shared values can print to far more than they take; what would be longer is refused.
inline constexpr std::size_t kMaxPrintedBytes = 64UZ << 20;
void check_printed(const std::string& out);

// Append what Python's str() and repr() return.
void append_str(std::string& out, const Value& value);
void append_repr(std::string& out, const Value& value);
std::string str(const Value& value);
std::string repr(const Value& value);
std::string in_quotes(std::string_view text);  // repr() of a string
std::string float_repr(double value);

// The name of a value's type as Python's messages have it, and as Jinja's have it.
std::string_view type_name(const Value& value);
std::string object_type(Kind kind);

struct JsonStyle {
  bool ascii = false;
  bool indented = false;
  bool sorted = false;
  std::string indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
// Equal to Python's json.dumps.
std::string json_dumps(const Value& value, const JsonStyle& style);

// & < > ' " as HTML's entities.
std::string escape_html(std::string_view text);

}  // namespace baton::jinja
