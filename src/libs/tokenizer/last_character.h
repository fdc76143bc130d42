// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/text/utf8.h"

#include <cstddef>
#include <string_view>

namespace baton::tokenizer {

// Offset of the last character. Requires: valid UTF-8, not empty.
inline std::size_t last_character(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && is_utf8_continuation(text[at])) --at;
  return at;
}

}  // namespace baton::tokenizer
