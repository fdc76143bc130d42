// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace baton::jinja {

// Text as Python's str sees it. Requires everywhere: valid UTF-8.

std::size_t count_code_points(std::string_view text);
// Offset of the code point at `index`. Requires: index below the count.
std::size_t code_point_offset(std::string_view text, std::size_t index);
// The code point at the front, which is taken off. Requires: not empty.
char32_t take_code_point(std::string_view& text);
// The same at the back.
char32_t take_last_code_point(std::string_view& text);
void append_code_point(std::string& text, char32_t code_point);

bool is_space(char32_t c);
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_title(char32_t c);
bool is_printable(char32_t c);
bool is_line_break(char32_t c);
// str.isupper() and str.islower().
bool all_upper(std::string_view text);
bool all_lower(std::string_view text);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_title(std::string_view text);
std::string capitalize(std::string_view text);
std::string swap_case(std::string_view text);

// The text without white space, or without the characters of `chars`, at its ends.
std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);
std::string_view strip_left(std::string_view text, std::string_view chars);
std::string_view strip_right(std::string_view text, std::string_view chars);

}  // namespace baton::jinja
