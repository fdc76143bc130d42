// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/tokenizer/byte_alphabet.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace baton::prompt {
namespace {

struct Alphabet {
  // All characters are below U+0144, so none takes more than two bytes of UTF-8.
  static constexpr std::size_t kEnd = 0x144;
  static constexpr std::int16_t kNone = -1;
  std::array<std::uint16_t, 256> character = {};
  std::array<std::int16_t, kEnd> byte = {};
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.byte.fill(Alphabet::kNone);
  std::uint16_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    const std::uint16_t character = printable ? static_cast<std::uint16_t>(byte) : next++;
    alphabet.character[byte] = character;
    alphabet.byte[character] = static_cast<std::int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

void append_byte_alphabet(std::string_view bytes, std::string& written) {
  for (const char raw : bytes) {
    const unsigned character = kAlphabet.character[static_cast<unsigned char>(raw)];
    if (character < 0x80) {
      written.push_back(static_cast<char>(character));
    } else {
      written.push_back(static_cast<char>(0xC0 | character >> 6));
      written.push_back(static_cast<char>(0x80 | (character & 0x3F)));
    }
  }
}

bool append_alphabet_bytes(std::string_view written, std::string& bytes) {
  const std::size_t before = bytes.size();
  for (std::size_t at = 0; at < written.size(); ++at) {
    unsigned character = static_cast<unsigned char>(written[at]);
    if (character >= 0xC2 && character <= 0xC5 && at + 1 < written.size()) {
      character = (character & 0x1F) << 6 | (static_cast<unsigned char>(written[++at]) & 0x3F);
    } else if (character >= 0x80) {
      character = Alphabet::kEnd;
    }
    if (character >= Alphabet::kEnd || kAlphabet.byte[character] == Alphabet::kNone) {
      bytes.resize(before);
      return false;
    }
    bytes.push_back(static_cast<char>(kAlphabet.byte[character]));
  }
  return true;
}

}  // namespace baton::prompt
