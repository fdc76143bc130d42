// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/value.h"

#include <cstdint>
#include <string_view>

namespace baton::jinja {

class Run;

// Operations of Python's str that filters and methods share. Each keeps markup markup.

// A piece of the text: shares it.
Value piece_of(Run& run, const Value& text, std::string_view piece);
// New text in place of the old.
Value changed_text(Run& run, const Value& text, std::string changed);

Value stripped(Run& run, const Value& text, const Value& chars, bool left, bool right);
Value replaced(Run& run, const Value& text, std::string_view old, std::string_view by,
               std::int64_t count);
enum class Side : std::uint8_t { Left, Right, Both };
// Filled up with `fill` on this side (Python's rjust, ljust, center).
Value padded(Run& run, const Value& text, std::int64_t width, std::string_view fill, Side side);
Value split(Run& run, const Value& text, const Value& separator, std::int64_t limit);
Value split_right(Run& run, const Value& text, const Value& separator, std::int64_t limit);
Value split_lines(Run& run, const Value& text, bool keep_ends);
// Joins the strings of a list; raises if an element is no string.
Value joined(Run& run, const Value& separator, const Value& strings);

}  // namespace baton::jinja
