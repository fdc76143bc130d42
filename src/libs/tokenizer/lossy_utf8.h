// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <string>
#include <string_view>

namespace baton::tokenizer {

// The bytes as text: U+FFFD stands where they are not UTF-8, once for each longest run of bytes that
// could have begun a character (Unicode's recommended practice, and what Rust and Python do).
std::string lossy_utf8(std::string_view bytes);

}  // namespace baton::tokenizer
