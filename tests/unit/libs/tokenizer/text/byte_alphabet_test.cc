// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/byte_alphabet.h"

#include <gtest/gtest.h>

#include <set>

namespace baton::tokenizer {
namespace {

TEST(ByteAlphabet, WritesBytesAsGpt2Does) {
  std::string out;
  ByteAlphabet::instance().write("a b\n\xC3\xA9\xAD\x7F", out);
  EXPECT_EQ(out, "aĠbĊÃ©Ń\u0121");
}

TEST(ByteAlphabet, HasACharacterForEachByte) {
  const ByteAlphabet& alphabet = ByteAlphabet::instance();
  std::set<char32_t> characters;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char32_t character = alphabet.character(static_cast<std::uint8_t>(byte));
    characters.insert(character);
    EXPECT_EQ(alphabet.byte(character), byte);
  }
  EXPECT_EQ(characters.size(), 256U);
  EXPECT_EQ(*characters.rbegin(), 0x143U);
}

TEST(ByteAlphabet, KnowsWhatIsNotOfIt) {
  const ByteAlphabet& alphabet = ByteAlphabet::instance();
  for (const char32_t code :
       {U' ', U'\n', char32_t{0xA0}, char32_t{0xAD}, char32_t{0x144}, char32_t{0x10FFFF}}) {
    EXPECT_FALSE(alphabet.byte(code)) << static_cast<unsigned>(code);
  }
  std::string out;
  EXPECT_TRUE(alphabet.read("Ġa", out));
  EXPECT_EQ(out, " a");
  EXPECT_FALSE(alphabet.read("a b", out));
}

}  // namespace
}  // namespace baton::tokenizer
