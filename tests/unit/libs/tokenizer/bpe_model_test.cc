// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/bpe_model.h"

#include "libs/tokenizer/text/utf8.h"
#include "unit/libs/tokenizer/json_of.h"
#include "unit/libs/tokenizer/small_tokenizers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::tokenizer {
namespace {

TokenIds encoded(const Model& model, std::string_view piece) {
  Workspace workspace;
  TokenIds ids;
  model.encode(std::span(&piece, 1), workspace, ids);
  return ids;
}

std::unique_ptr<const Model> made(std::string_view json, ByteLevel byte_level = ByteLevel::No) {
  auto model = Model::from_json(JsonOf(json), byte_level);
  if (!model) {
    ADD_FAILURE() << model.error().message();
    return nullptr;
  }
  return std::move(*model);
}

std::string model_refusal(std::string_view json, ByteLevel byte_level = ByteLevel::No) {
  const auto model = Model::from_json(JsonOf(json), byte_level);
  return model ? "" : model.error().message();
}

TEST(BpeModel, MergesByRank) {
  const auto model = made(kLetters);
  EXPECT_EQ(encoded(*model, "abc"), (TokenIds{6}));
  EXPECT_EQ(encoded(*model, "bc"), (TokenIds{5}));
  EXPECT_EQ(encoded(*model, "ddd"), (TokenIds{7, 3}));
  EXPECT_EQ(encoded(*model, "dabcb"), (TokenIds{3, 6, 1}));
}

TEST(BpeModel, AsksTheSameTwiceAndGetsTheSame) {
  // The token "bc" cannot be reached by merging, so its text is not that token.
  const auto model =
      made(R"({"type":"BPE","vocab":{"b":0,"c":1,"bc":2,"bb":3,"bbc":4},"merges":["b b","bb c"]})");
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(encoded(*model, "bc"), (TokenIds{0, 1}));
    EXPECT_EQ(encoded(*model, "bbc"), (TokenIds{4}));
  }
}

TEST(BpeModel, AsksOfRareTokensWhenTheyCome) {
  // High ids are not asked when loading; the answers are the same.
  const auto model =
      made(R"({"type":"BPE","vocab":{"b":0,"c":1,"bc":40000,"bb":40001,"bbc":40002},)"
           R"("merges":["b b","bb c"]})");
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(encoded(*model, "bc"), (TokenIds{0, 1}));
    EXPECT_EQ(encoded(*model, "bbc"), (TokenIds{40002}));
  }
}

TEST(BpeModel, TakesAPieceThatIsATokenIfToldTo) {
  const auto model = made(R"({"type":"BPE","ignore_merges":true,)"
                          R"("vocab":{"b":0,"c":1,"bc":2,"cb":3},"merges":["b c"]})");
  EXPECT_EQ(encoded(*model, "cb"), (TokenIds{3}));
  EXPECT_EQ(encoded(*model, "cbc"), (TokenIds{1, 2})) << "only the whole piece";
}

TEST(BpeModel, WritesUnknownCharactersAsBytes) {
  std::string vocabulary = R"("<unk>":0,"a":1)";
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
    vocabulary += ",\"" + std::string(name) + "\":" + std::to_string(byte + 2);
  }
  const auto model = made(R"({"type":"BPE","unk_token":"<unk>","fuse_unk":true,)"
                          R"("byte_fallback":true,"merges":[],"vocab":{)" +
                          vocabulary + "}}");
  EXPECT_EQ(encoded(*model, "aéa"), (TokenIds{1, 2 + 0xC3, 2 + 0xA9, 1}));
  EXPECT_TRUE(model->complete());
}

TEST(BpeModel, KnowsUnknownCharacters) {
  const std::string head = R"({"type":"BPE","merges":[],"vocab":{"a":0,"?":1})";
  const auto fused = made(head + R"(,"unk_token":"?","fuse_unk":true})");
  EXPECT_EQ(encoded(*fused, "éaxyz"), (TokenIds{1, 0, 1}));
  const auto each = made(head + R"(,"unk_token":"?"})");
  EXPECT_EQ(encoded(*each, "éaxyz"), (TokenIds{1, 0, 1, 1, 1}));
  const auto dropped = made(head + "}");
  EXPECT_EQ(encoded(*dropped, "éaxyz"), (TokenIds{0}));
}

TEST(BpeModel, PutsPrefixesAndSuffixesOnCharacters) {
  const auto model =
      made(R"({"type":"BPE","continuing_subword_prefix":"##","end_of_word_suffix":"</w>",)"
           R"("vocab":{"a":0,"##b":1,"##b</w>":2,"ab":3,"ab</w>":4,"a</w>":5},)"
           R"("merges":["a ##b","a ##b</w>"]})");
  EXPECT_EQ(encoded(*model, "ab"), (TokenIds{4}));
  EXPECT_EQ(encoded(*model, "abb"), (TokenIds{3, 2}));
  EXPECT_EQ(encoded(*model, "a"), (TokenIds{5}));
}

TEST(BpeModel, KeepsByteLevelTokensAsBytes) {
  const auto model = made(byte_level_model(), ByteLevel::Yes);
  EXPECT_TRUE(model->takes_bytes());
  EXPECT_EQ(encoded(*model, "hello"), (TokenIds{259}));
  EXPECT_EQ(encoded(*model, " h\n"), (TokenIds{260, '\n'}));
  EXPECT_EQ(encoded(*model, "é"), (TokenIds{0xC3, 0xA9}));
  EXPECT_EQ(model->token(260), "Ġh");
  EXPECT_EQ(model->find("Ġh"), 260U);
  EXPECT_EQ(model->find(" h"), std::nullopt) << "not how the file writes it";
  EXPECT_EQ(model->size(), 261U);
  EXPECT_EQ(model->token(261), std::nullopt);
}

TEST(BpeModel, KeepsTokensThatNoBytesAreWrittenAs) {
  const auto model = made(R"({"type":"BPE","vocab":{"a":0,"字":1},"merges":[]})", ByteLevel::Yes);
  EXPECT_EQ(model->find("字"), 1U);
  EXPECT_EQ(model->token(1), "字");
  EXPECT_EQ(encoded(*model, "字a"), (TokenIds{0}));
  EXPECT_FALSE(model->complete());
}

TEST(BpeModel, ReadsMergesInBothForms) {
  const auto model = made(R"({"type":"BPE","vocab":{"a":0," ":1,"a ":2,"aa":3},)"
                          R"("merges":["#version: 0.2","a a",["a"," "]]})");
  EXPECT_EQ(encoded(*model, "a "), (TokenIds{2}));
  EXPECT_EQ(encoded(*model, "aa"), (TokenIds{3}));
}

TEST(BpeModel, NamesWhatIsWrong) {
  EXPECT_EQ(model_refusal(R"({"type":"BPE","vocab":{},"merges":[],"sparkle":true})"),
            "model: \"sparkle\" is not known to Baton");
  EXPECT_EQ(model_refusal(R"({"type":"BPE","vocab":{},"merges":[],"dropout":0.1})"),
            "model: \"dropout\" would make tokens a matter of luck; set it to null");
  EXPECT_EQ(model_refusal(R"({"type":"BPE","vocab":{"a":0},"merges":["a b"]})"),
            "model: merges[0] is not two tokens of the vocabulary that make a third one");
  EXPECT_EQ(model_refusal(R"({"type":"BPE","vocab":{"a":0,"aa":1},"merges":["a a","a"]})"),
            "model: merges[1] is not two tokens of the vocabulary that make a third one");
  EXPECT_EQ(model_refusal(R"({"type":"BPE","vocab":{"a":0,"b":0},"merges":[]})"),
            "model: \"vocab\" has two tokens of id 0");
  EXPECT_EQ(model_refusal(R"({"type":"BPE","vocab":{"a":0,"字":0},"merges":[]})", ByteLevel::Yes),
            "model: \"vocab\" has two tokens of id 0");
  EXPECT_EQ(model_refusal(R"({"type":"BPE","vocab":{"a":0,"a":1},"merges":[]})"),
            "model: \"vocab\" has the token of id 1 twice");
  EXPECT_EQ(model_refusal(R"({"type":"BPE","vocab":{"a":4194304},"merges":[]})"),
            "model: \"vocab\" has an id that is no whole number below 4194304");
  EXPECT_EQ(model_refusal(R"({"type":"BPE","vocab":{"a":0},"merges":[],"unk_token":"?"})"),
            "the model's unk_token \"?\" is not in its vocabulary");
  EXPECT_EQ(model_refusal(R"({"type":"BPE","vocab":{"a":0}})"), "model: \"merges\" is missing");
  EXPECT_EQ(model_refusal(R"({"type":"Odd"})"), "the model \"Odd\" is not known to Baton");
}

// Cutting where no merge joins, and looking words up, must not change a token. A model over a few
// characters, some of them unknown, is compared with merging the whole text by the rule.
TEST(BpeModel, CutsWithoutChangingATokenOnRandomModels) {
  std::mt19937 random(11);
  std::size_t parts = 0;
  const std::vector<std::string> alphabet = {"a", "b", "▁", "é", "字", "😀", "x", "ß"};
  for (int round = 0; round < 200; ++round) {
    std::map<std::string, TokenId> ids;
    std::string vocabulary;
    const auto add = [&](const std::string& text) {
      if (!ids.emplace(text, ids.size()).second) return false;
      vocabulary += (vocabulary.empty() ? "\"" : ",\"") + text + "\":" + std::to_string(ids[text]);
      return true;
    };
    add("?");
    for (std::size_t at = 0; at < 5; ++at) add(alphabet[at]);
    std::vector<std::string> texts(alphabet.begin(), alphabet.begin() + 5);
    std::vector<std::pair<std::string, std::string>> merges;
    std::string merges_json;
    for (int at = 0; at < 15; ++at) {
      const std::string left = texts[random() % texts.size()];
      const std::string right = texts[random() % texts.size()];
      if (left.size() + right.size() > 30) continue;
      if (add(left + right)) texts.push_back(left + right);
      if (std::ranges::find(merges, std::pair(left, right)) != merges.end()) continue;
      merges.emplace_back(left, right);
      merges_json += (merges_json.empty() ? "[\"" : ",[\"") + left + "\",\"" + right + "\"]";
    }
    const bool has_unknown = round % 3 != 0;
    const auto model = made(R"({"type":"BPE","vocab":{)" + vocabulary + R"(},"merges":[)" +
                            merges_json + "]" + (has_unknown ? R"(,"unk_token":"?")" : "") + "}");

    for (int text_round = 0; text_round < 20; ++text_round) {
      std::string text;
      std::vector<std::string> symbols;
      for (std::size_t length = 1 + random() % 80; length > 0; --length) {
        const std::string& one = alphabet[random() % alphabet.size()];
        text += one;
        if (ids.contains(one)) symbols.push_back(one);
        if (!ids.contains(one) && has_unknown) symbols.push_back("?");
      }
      for (std::size_t best = 0; best < symbols.size();) {
        best = symbols.size();
        std::size_t rank = merges.size();
        for (std::size_t at = 0; at + 1 < symbols.size(); ++at) {
          const auto found = static_cast<std::size_t>(
              std::ranges::find(merges, std::pair(symbols[at], symbols[at + 1])) - merges.begin());
          if (found < rank) {
            rank = found;
            best = at;
          }
        }
        if (best == symbols.size()) break;
        symbols[best] += symbols[best + 1];
        symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
      }
      TokenIds expected;
      for (const std::string& symbol : symbols) expected.push_back(ids.at(symbol));
      ASSERT_EQ(encoded(*model, text), expected) << text << " in round " << round;

      TokenIds in_parts;
      const std::size_t at_least = 1 + random() % 20;
      for (std::string_view rest = text; !rest.empty(); ++parts) {
        const std::size_t length = model->cut_behind(rest, at_least);
        ASSERT_GE(length, std::min(at_least, rest.size()));
        const TokenIds some = encoded(*model, rest.substr(0, length));
        in_parts.insert(in_parts.end(), some.begin(), some.end());
        rest.remove_prefix(length);
      }
      ASSERT_EQ(in_parts, expected) << text << " in round " << round << " by " << at_least;
    }
  }
  EXPECT_GT(parts, 2U * 200 * 20) << "texts are not cut at all";
}

TEST(BpeModel, CutsBetweenCharactersThatNoMergeJoins) {
  const auto model = made(R"({"type":"BPE","vocab":{"?":0,"a":1,"b":2,"é":3,"ab":4},)"
                          R"("merges":["a b"],"unk_token":"?"})");
  EXPECT_EQ(model->cut_behind("éabé", 0), 2U);
  EXPECT_EQ(model->cut_behind("éabé", 1), 4U) << "neither within é nor between a and b";
  EXPECT_EQ(model->cut_behind("éabé", 3), 4U);
  EXPECT_EQ(model->cut_behind("éabé", 5), 6U);
  EXPECT_EQ(model->cut_behind("éabé", 9), 6U);
}

TEST(BpeModel, DoesNotCutWhereAPieceIsLookedUpAsAWhole) {
  const auto model = made(R"({"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"],)"
                          R"("ignore_merges":true})");
  EXPECT_EQ(model->cut_behind("abab", 1), 4U);
}

}  // namespace
}  // namespace baton::tokenizer
