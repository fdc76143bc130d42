// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/byte_alphabet.h"

#include "libs/tokenizer/text/utf8.h"

namespace baton::tokenizer {

const ByteAlphabet& ByteAlphabet::instance() {
  static const ByteAlphabet kAlphabet;
  return kAlphabet;
}

ByteAlphabet::ByteAlphabet() {
  bytes_.fill(-1);
  char32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool visible = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    const char32_t character = visible ? byte : next++;
    characters_[byte] = character;
    bytes_[character] = static_cast<std::int16_t>(byte);
  }
}

std::optional<std::uint8_t> ByteAlphabet::byte(char32_t character) const {
  if (character >= bytes_.size() || bytes_[character] < 0) {
    return std::nullopt;
  }
  return static_cast<std::uint8_t>(bytes_[character]);
}

void ByteAlphabet::write(std::string_view bytes, std::string& out) const {
  for (const char byte : bytes) {
    append_utf8(out, characters_[static_cast<std::uint8_t>(byte)]);
  }
}

bool ByteAlphabet::read(std::string_view characters, std::string& out) const {
  for (std::size_t at = 0; at < characters.size();) {
    const auto [code, size] = decode_utf8(characters.data() + at);
    const auto found = byte(code);
    if (!found) {
      return false;
    }
    out.push_back(static_cast<char>(*found));
    at += size;
  }
  return true;
}

}  // namespace baton::tokenizer
