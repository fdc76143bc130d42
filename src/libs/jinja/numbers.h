// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/value.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace baton::jinja {

// Python's int(text, base) and float(text); nothing where they raise.
std::optional<Value> parse_integer(std::string_view text, std::int64_t base);
std::optional<double> parse_float(std::string_view text);
// int(number). Requires: finite.
Value truncated(double number);
// round(number, digits), which goes to the even neighbour.
Value rounded(const Value& number, std::int64_t digits);

}  // namespace baton::jinja
