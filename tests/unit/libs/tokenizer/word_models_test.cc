// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/word_models.h"

#include "unit/libs/tokenizer/json_of.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace baton::tokenizer {
namespace {

TokenIds encoded_words(std::string_view json, std::vector<std::string_view> pieces) {
  const auto model = Model::from_json(JsonOf(json), ByteLevel::No);
  if (!model) {
    ADD_FAILURE() << model.error().message();
    return {};
  }
  Workspace workspace;
  TokenIds ids;
  (*model)->encode(pieces, workspace, ids);
  return ids;
}

constexpr std::string_view kWordPiece =
    R"({"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##",)"
    R"("max_input_chars_per_word":6,)"
    R"("vocab":{"[UNK]":0,"un":1,"una":2,"##aff":3,"##able":4,"##a":5,"é":6,"##é":7}})";

TEST(WordPieceModel, TakesTheLongestEachTime) {
  EXPECT_EQ(encoded_words(kWordPiece, {"unaff"}), (TokenIds{0}))
      << "una, then nothing goes on with ff";
  EXPECT_EQ(encoded_words(kWordPiece, {"unable"}), (TokenIds{0})) << "una, then no ##ble";
  EXPECT_EQ(encoded_words(kWordPiece, {"unaaff"}), (TokenIds{2, 3}));
  EXPECT_EQ(encoded_words(kWordPiece, {"éé", "un"}), (TokenIds{6, 7, 1}));
}

TEST(WordPieceModel, DoesNotTryLongWords) {
  EXPECT_EQ(encoded_words(kWordPiece, {"éééééé"}), (TokenIds{6, 7, 7, 7, 7, 7}));
  EXPECT_EQ(encoded_words(kWordPiece, {"ééééééé"}), (TokenIds{0}));
}

TEST(WordLevelModel, KnowsAWordOrDoesNot) {
  EXPECT_EQ(encoded_words(R"({"type":"WordLevel","unk_token":"?","vocab":{"?":0,"a":1,"b":2}})",
                          {"b", "ab", "a"}),
            (TokenIds{2, 0, 1}));
}

TEST(WordModels, WantTheirUnknownToken) {
  for (const std::string type : {"WordLevel", "WordPiece"}) {
    const auto model = Model::from_json(
        JsonOf(R"({"type":")" + type + R"(","unk_token":"?","vocab":{"a":0}})"), ByteLevel::No);
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().message(), "model: the unk_token \"?\" is not in the vocabulary");
  }
}

TEST(WordModels, AreKnownByWhatTheyHaveWhereAFileDoesNotSay) {
  EXPECT_EQ(encoded_words(R"({"unk_token":"?","max_input_chars_per_word":100,)"
                          R"("vocab":{"?":0,"a":1,"##b":2}})",
                          {"ab"}),
            (TokenIds{1, 2}));
  EXPECT_EQ(encoded_words(R"({"unk_token":"?","vocab":{"?":0,"a":1}})", {"ab"}), (TokenIds{0}));
}

}  // namespace
}  // namespace baton::tokenizer
