// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <string_view>

namespace baton::tokenizer {

// End of the extended grapheme cluster that begins at `start`, by Unicode 17 (UAX #29). Requires:
// valid UTF-8, a cluster's start before the end of the text.
std::size_t grapheme_end(std::string_view text, std::size_t start);

}  // namespace baton::tokenizer
