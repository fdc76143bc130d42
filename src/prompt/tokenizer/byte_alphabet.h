// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <string>
#include <string_view>

namespace baton::prompt {

// ByteLevel's alphabet: each of the 256 bytes is written as one printable character. Printable bytes
// of Latin-1 stand for themselves, the others follow from U+0100 on in their order.

// Appends the characters that the bytes are written as.
void append_byte_alphabet(std::string_view bytes, std::string& written);
// Appends the bytes that the characters stand for; false where one of them is not of the alphabet,
// and then `bytes` is as it was.
bool append_alphabet_bytes(std::string_view written, std::string& bytes);

}  // namespace baton::prompt
