// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/token_pieces.h"

#include "unit/libs/tokenizer/small_tokenizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::tokenizer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(TokenPieces, KeepTheSpacesThatADecoderStripsFromTheBeginning) {
  const auto tokenizer = make(byte_fallback_file());
  // "▁ab" 4, "▁" 0, "▁a" 3, "b" 2
  EXPECT_THAT(token_pieces(*tokenizer, TokenIds{4, 4, 0, 3, 2}),
              ElementsAre("ab", " ab", " ", " a", "b"));
  EXPECT_THAT(token_pieces(*tokenizer, TokenIds{6, 4}), ElementsAre("<s>", " ab"));
  EXPECT_THAT(token_pieces(*tokenizer, {}), IsEmpty());
}

TEST(TokenPieces, ShowPartsOfACharacterAsTheyDecodeAlone) {
  const auto fallback = make(byte_fallback_file());
  EXPECT_THAT(token_pieces(*fallback, TokenIds{1, 7 + 0xC3, 7 + 0xA9, 2}),
              ElementsAre("a", "\uFFFD", "\uFFFD", "b"));
  const auto bytes = make(byte_level_file());
  EXPECT_THAT(token_pieces(*bytes, TokenIds{0xE5, 0xAD, 0x97, 260, 261}),
              ElementsAre("\uFFFD", "\uFFFD", "\uFFFD", " h", "<|end|>"));
}

}  // namespace
}  // namespace baton::tokenizer
