// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace baton::scan {

// The functions below require valid JSON text, except for the last one.

// The first position at or after `at` that is not white space.
std::size_t skip_space(std::string_view text, std::size_t at);
struct StringAt {
  std::string_view raw;  // between the quotes
  bool escaped;          // it holds a backslash
  std::size_t end;       // past the closing quote
};
// The string whose opening quote is at `at`.
StringAt string_at(std::string_view text, std::size_t at);
// How far it is to the next quote or backslash, or to the end.
std::size_t plain_size(std::string_view text);
// Past the value that starts at `at`.
std::size_t skip_value(std::string_view text, std::size_t at);
// Unescapes the raw text between a string's quotes. Lone surrogates become U+FFFD.
std::string unescape(std::string_view raw);
// Writes the unescaped string, from `at` to its closing quote or the end of the text. Requires:
// room for as many bytes as the text has from `at` on, elsewhere; bytes behind the returned
// position may have been overwritten. `at` goes past the quote.
char* unescape_to(char* to, std::string_view text, std::size_t& at);

// The text with every well-formed number replaced by a zero and blanks; its length stays the same.
// A parser that refuses numbers too large for C++ accepts the result if the rest is valid.
std::string without_numbers(std::string_view text);

}  // namespace baton::scan
