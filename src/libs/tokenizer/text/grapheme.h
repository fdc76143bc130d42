// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <string_view>

namespace baton::tokenizer {

// Where the extended grapheme cluster that begins at `start` ends, as Unicode 17 (UAX #29) has it.
// Requires: valid UTF-8, a cluster's start before the end of the text.
std::size_t grapheme_end(std::string_view text, std::size_t start);

}  // namespace baton::tokenizer
