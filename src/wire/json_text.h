// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace baton::wire {

// Checks that `text` is one JSON object, all of it, and says what is wrong where it is not
// (InvalidJson). Numbers of any size are fine: they are passed on, not computed with.
Result<void> validate_json_object(std::string_view text);

// The functions below take text that is known to be valid JSON.

// The first position at or after `at` that is not white space.
std::size_t skip_space(std::string_view text, std::size_t at);
// Past the value that starts at `at`.
std::size_t skip_value(std::string_view text, std::size_t at);
// What a string means, given what stands between its quotes. Lone surrogates become U+FFFD.
std::string unescape(std::string_view raw);

}  // namespace baton::wire
