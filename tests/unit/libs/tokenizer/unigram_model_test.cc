// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/unigram_model.h"

#include "unit/libs/tokenizer/json_of.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace baton::tokenizer {
namespace {

TokenIds encoded(std::string_view json, std::string_view piece) {
  const auto model = Model::from_json(JsonOf(json), ByteLevel::No);
  if (!model) {
    ADD_FAILURE() << model.error().message();
    return {};
  }
  Workspace workspace;
  TokenIds ids;
  (*model)->encode(std::span(&piece, 1), workspace, ids);
  return ids;
}

constexpr std::string_view kModel =
    R"({"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["a",-1],["b",-2],["ab",-2.5],)"
    R"(["abc",-9],["c",-3],["é",-1]]})";

TEST(UnigramModel, TakesThePathOfTheHighestSum) {
  EXPECT_EQ(encoded(kModel, "ab"), (TokenIds{3})) << "-2.5 beats -1 and -2";
  EXPECT_EQ(encoded(kModel, "abc"), (TokenIds{3, 5})) << "-5.5 beats -9 and -6";
  EXPECT_EQ(encoded(kModel, "ba"), (TokenIds{2, 1}));
  EXPECT_EQ(encoded(kModel, "é"), (TokenIds{6}));
}

TEST(UnigramModel, TakesTheEarlierOfEqualPaths) {
  // "x" and "yz" against "xy" and "z": both -2. Where they meet, the one found first stays.
  EXPECT_EQ(encoded(R"({"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["x",-1],["yz",-1],)"
                    R"(["xy",-1],["z",-1],["y",-5]]})",
                    "xyz"),
            (TokenIds{1, 2}));
}

TEST(UnigramModel, JoinsUnknownCharacters) {
  EXPECT_EQ(encoded(kModel, "xyaz字"), (TokenIds{0, 1, 0}));
}

TEST(UnigramModel, WritesUnknownCharactersAsBytes) {
  EXPECT_EQ(encoded(R"({"type":"Unigram","unk_id":0,"byte_fallback":true,)"
                    R"("vocab":[["<unk>",0],["a",-1],["<0xC3>",0],["<0xA9>",0]]})",
                    "aéx"),
            (TokenIds{1, 0}))
      << "two unknown ones in a row, and x has no byte token";
  EXPECT_EQ(encoded(R"({"type":"Unigram","unk_id":0,"byte_fallback":true,)"
                    R"("vocab":[["<unk>",0],["a",-1],["<0xC3>",0],["<0xA9>",0]]})",
                    "aéa"),
            (TokenIds{1, 2, 3, 1}));
}

TEST(UnigramModel, NamesWhatIsWrong) {
  const auto refusal = [](std::string_view json) {
    const auto model = Model::from_json(JsonOf(json), ByteLevel::No);
    return model ? "" : model.error().message();
  };
  EXPECT_EQ(refusal(R"({"type":"Unigram","unk_id":1,"vocab":[["a",0]]})"),
            "model: \"unk_id\" is not in the vocabulary");
  EXPECT_EQ(refusal(R"({"type":"Unigram","unk_id":0,"vocab":[]})"), "model: \"vocab\" is empty");
  EXPECT_EQ(refusal(R"({"type":"Unigram","unk_id":0,"vocab":[["a"]]})"),
            "model: vocab[0] is not a token and its score");
  EXPECT_EQ(refusal(R"({"type":"Unigram","vocab":[["a",0]]})"), "model: \"unk_id\" is missing");
}

}  // namespace
}  // namespace baton::tokenizer
