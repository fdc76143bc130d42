// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/tokenizer/added_tokens.h"

#include "unit/prompt/tokenizer/json_of.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace baton::prompt {
namespace {

std::unique_ptr<const Model> model_of(std::string_view vocabulary) {
  auto made = Model::from_json(
      JsonOf(R"({"type":"BPE","merges":[],"vocab":)" + std::string(vocabulary) + "}"),
      ByteLevel::No);
  if (!made) {
    ADD_FAILURE() << made.error().message();
    return nullptr;
  }
  return std::move(*made);
}

// Parts as text: a token is its id in brackets.
std::string shown(const AddedTokens& tokens, std::string_view text) {
  std::vector<AddedTokens::Part> parts;
  tokens.cut_raw(text, parts);
  std::string result;
  for (const AddedTokens::Part& part : parts) {
    result += part.id ? "[" + std::to_string(*part.id) + "]" : "(" + std::string(part.text) + ")";
  }
  return result;
}

AddedToken raw(std::string content) {
  return {.content = std::move(content), .normalized = false, .special = true};
}

TEST(AddedTokens, TakesTheIdsThatTheLibraryWouldGive) {
  const auto model = model_of(R"({"a":0,"b":1})");
  AddedTokens tokens;
  tokens.add(raw("a"), *model);
  tokens.add(raw("x"), *model);
  tokens.add(raw("y"), *model);
  tokens.add(raw("x"), *model);
  tokens.add(raw(""), *model);
  EXPECT_EQ(tokens.find("a"), 0U) << "the model has it";
  EXPECT_EQ(tokens.find("x"), 2U) << "the first behind the model's";
  EXPECT_EQ(tokens.find("y"), 3U);
  EXPECT_EQ(tokens.find("b"), std::nullopt);
  EXPECT_EQ(tokens.find(""), std::nullopt);
  EXPECT_EQ(tokens.beyond(*model), 2U);
}

TEST(AddedTokens, CutsTheTextAroundThem) {
  const auto model = model_of(R"({"a":0})");
  AddedTokens tokens;
  tokens.add(raw("<x>"), *model);
  tokens.add(raw("<x>y"), *model);
  tokens.finish(nullptr);
  EXPECT_EQ(shown(tokens, "a<x>b<x>yc<x"), "(a)[1](b)[2](c<x)");
  EXPECT_EQ(shown(tokens, "<x><x>"), "[1][1]");
  EXPECT_EQ(shown(tokens, ""), "");
}

TEST(AddedTokens, TakesWhiteSpaceAlong) {
  const auto model = model_of(R"({"a":0})");
  AddedTokens tokens;
  AddedToken left = raw("<l>");
  left.lstrip = true;
  AddedToken right = raw("<r>");
  right.rstrip = true;
  tokens.add(left, *model);
  tokens.add(right, *model);
  tokens.finish(nullptr);
  EXPECT_EQ(shown(tokens, "a \t<l> b"), "(a)[1]( b)");
  EXPECT_EQ(shown(tokens, "a <r>\n\u3000b"), "(a )[2](b)");
  EXPECT_EQ(shown(tokens, "<r>  <l>"), "[2][1]") << "what one took, the next does not get";
}

TEST(AddedTokens, LetsATokenCountThatAnotherTookAsWhiteSpace) {
  const auto model = model_of(R"({"a":0})");
  AddedTokens tokens;
  AddedToken right = raw("<r>");
  right.rstrip = true;
  tokens.add(right, *model);
  tokens.add(raw("\n"), *model);
  tokens.finish(nullptr);
  EXPECT_EQ(shown(tokens, "<r> \nb"), "[1][2](b)");
}

TEST(AddedTokens, FindsSingleWordsOnly) {
  const auto model = model_of(R"({"a":0})");
  AddedTokens tokens;
  AddedToken word = raw("ab");
  word.single_word = true;
  tokens.add(word, *model);
  tokens.finish(nullptr);
  EXPECT_EQ(shown(tokens, "ab .ab. xab abx ab_ éab"), "[1]( .)[1](. xab abx ab_ éab)");
  EXPECT_EQ(shown(tokens, "abab"), "(abab)");
}

TEST(AddedTokens, ChangesATokenThatIsThere) {
  const auto model = model_of(R"({"a":0})");
  AddedTokens tokens;
  tokens.add(raw("<x>"), *model);
  AddedToken changed = raw("<x>");
  changed.lstrip = true;
  tokens.add(changed, *model);
  tokens.finish(nullptr);
  EXPECT_EQ(shown(tokens, "a <x>"), "(a)[1]");
}

TEST(AddedTokens, LooksForNormalizedOnesInNormalizedText) {
  const auto lower = Normalizer::from_json(JsonOf(R"({"type":"Lowercase"})"));
  ASSERT_TRUE(lower);
  const auto model = model_of(R"({"a":0})");
  AddedTokens tokens;
  tokens.add({.content = "<X>", .normalized = true, .special = true}, *model);
  tokens.finish(lower->get());
  EXPECT_EQ(shown(tokens, "<X>"), "(<X>)");
  std::vector<AddedTokens::Part> parts;
  tokens.cut_normalized("a<x>", parts);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[1].id, 1U);
  EXPECT_EQ(tokens.content(1), "<x>") << "the library shows it normalized";
  EXPECT_TRUE(tokens.special("<X>"));
  EXPECT_FALSE(tokens.special("<x>"));
}

}  // namespace
}  // namespace baton::prompt
