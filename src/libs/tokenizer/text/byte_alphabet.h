// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton::tokenizer {

// Role. ByteLevel's alphabet: each byte is written as a visible character, printable Latin-1 as
//   itself, the others from U+0100 on.
// Confinement. Immutable; any thread.
class ByteAlphabet {
 public:
  static const ByteAlphabet& instance();

  char32_t character(std::uint8_t byte) const { return characters_[byte]; }
  std::optional<std::uint8_t> byte(char32_t character) const;

  // Appends the characters of the bytes.
  void write(std::string_view bytes, std::string& out) const;
  // Appends the bytes of the characters; false where one is not of the alphabet. Requires: valid
  // UTF-8.
  bool read(std::string_view characters, std::string& out) const;

 private:
  ByteAlphabet();

  std::array<char32_t, 256> characters_{};
  std::array<std::int16_t, 0x144> bytes_{};  // -1 where it is none
};

}  // namespace baton::tokenizer
