// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/memory_budget.h"
#include "core/result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace baton::wire {

// Checks that `text` is one JSON object, all of it, and says what is wrong where it is not
// (InvalidJson). Numbers of any size are fine: they are passed on, not computed with.
Result<void> validate_json_object(std::string_view text);
// The same, and gives `use` what the check found out, for as long as the call takes: where the
// object's structure is, in order. That is each bracket, comma and colon outside of strings, and the
// first byte of each string, number and literal.
using Structure = std::span<const std::uint32_t>;
Result<void> validate_json_object(std::string_view text, const std::function<void(Structure)>& use,
                                  MemoryShare* memory = nullptr);
// The same for a value of any kind.
Result<void> validate_json(std::string_view text);

// The functions below take text that is known to be valid JSON.

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
// What a string means, given what stands between its quotes. Lone surrogates become U+FFFD.
std::string unescape(std::string_view raw);
// Writes what a string means, from `at` to its closing quote or the end of the text. Requires: room
// for as many bytes as the text has from `at` on, elsewhere; what lies behind the place that is
// returned may have been written over. `at` goes past the quote.
char* unescape_to(char* to, std::string_view text, std::size_t& at);

}  // namespace baton::wire
