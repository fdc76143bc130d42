// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/value.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace baton::jinja {

// The literals of expressions. Sizes are of what stands at the front of the text, 0 for nothing.

struct NumberLiteral {
  std::size_t size = 0;
  bool is_float = false;
  Value value;
};
// `whole` where a fraction cannot follow, as after a dot.
NumberLiteral read_number(std::string_view text, bool whole);

std::size_t name_size(std::string_view text);
// With both quotes. Requires: a quote at the front.
std::size_t string_size(std::string_view text);
// The text of a string literal with Python's escapes undone; nothing where one is malformed.
std::optional<std::string> unescaped(std::string_view text);

}  // namespace baton::jinja
