// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/added_tokens.h"

#include "unit/libs/tokenizer/json_of.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace baton::tokenizer {
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
  std::string result;
  tokens.cut(text, [&](const AddedTokens::Part& part) {
    result += part.id ? "[" + std::to_string(*part.id) + "]" : "(" + std::string(part.text) + ")";
    return true;
  });
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

TEST(AddedTokens, LooksForAllInTextThatIsNotNormalized) {
  const auto model = model_of(R"({"a":0})");
  AddedTokens tokens;
  tokens.add(raw("<x>"), *model);
  tokens.add({.content = "a<", .normalized = true}, *model);
  tokens.finish(nullptr);
  EXPECT_FALSE(tokens.any_normalized());
  EXPECT_EQ(shown(tokens, "ba<x>a<b"), "(ba)[1][2](b)") << "the raw ones first";
}

TEST(AddedTokens, CutsNoMoreThanIsWanted) {
  const auto model = model_of(R"({"a":0})");
  AddedTokens tokens;
  tokens.add(raw("<x>"), *model);
  tokens.add({.content = "<y>", .normalized = true}, *model);
  tokens.finish(nullptr);
  const auto first = [&](std::size_t count) {
    std::string seen;
    tokens.cut("a<y>b<x>c", [&](const AddedTokens::Part& part) {
      seen += part.text;
      return --count > 0;
    });
    return seen;
  };
  EXPECT_EQ(first(1), "a");
  EXPECT_EQ(first(2), "a<y>");
  EXPECT_EQ(first(4), "a<y>b<x>");
  EXPECT_EQ(first(9), "a<y>b<x>c");
}

// Else a text of many tokens that are looked for later would be gone through to its end for each.
TEST(AddedTokens, LookOnlyOnceForThoseThatComeFirst) {
  const auto model = model_of(R"({"a":0})");
  AddedTokens tokens;
  tokens.add(raw("<x>"), *model);
  tokens.add({.content = "<y>", .normalized = true}, *model);
  tokens.finish(nullptr);
  std::string_view text = "a<y>b<y>c<x>d<y>e";
  std::size_t clear = 0;
  std::string seen;
  const auto cut_to_token = [&] {
    std::size_t length = 0;
    tokens.cut(text, clear, [&](const AddedTokens::Part& part) {
      seen += part.id ? '[' + std::string(part.text) + ']' : std::string(part.text);
      length += part.text.size();
      return !part.id;
    });
    text.remove_prefix(length);
    clear -= std::min(clear, length);
  };
  cut_to_token();
  EXPECT_EQ(seen, "a[<y>]");
  EXPECT_EQ(text.substr(clear, 3), "<x>") << "where the next of the first begins is known";
  cut_to_token();
  EXPECT_EQ(text.substr(clear, 3), "<x>");
  cut_to_token();
  EXPECT_EQ(clear, 0U) << "behind it nobody has looked yet";
  cut_to_token();
  EXPECT_EQ(clear, text.size()) << "there is none up to the end";
  cut_to_token();
  EXPECT_EQ(seen, "a[<y>]b[<y>]c[<x>]d[<y>]e");
  text = "<x>a";
  clear = text.size();
  seen.clear();
  cut_to_token();
  EXPECT_EQ(seen, "<x>a") << "it is not looked for where there is said to be none";
}

// A border stays a token whatever follows it.
TEST(AddedTokens, KnowsBorders) {
  const auto is_border = [](std::string_view token, std::vector<AddedToken> others) {
    const auto model = model_of(R"({"a":0})");
    AddedTokens tokens;
    tokens.add(raw(std::string(token)), *model);
    for (const AddedToken& other : others) tokens.add(other, *model);
    tokens.finish(nullptr);
    return tokens.is_border(1);
  };
  EXPECT_TRUE(is_border("<x>", {}));
  EXPECT_TRUE(is_border("<x>", {raw("<y>"), raw("<"), raw("a<x>"), raw("x")}));
  EXPECT_FALSE(is_border("<x>", {raw("<x>y")}));
  EXPECT_FALSE(is_border("<x>", {raw("a<x>y")})) << "begins before it, ends behind it";
  EXPECT_FALSE(is_border("<x>", {raw("x>y")})) << "found where it stands alone";
  EXPECT_FALSE(is_border("<x>", {{.content = ">y", .normalized = true}}));
  EXPECT_FALSE(is_border("xax", {})) << "reaches into itself";
  EXPECT_FALSE(is_border("\n\t", {}));
}

TEST(AddedTokens, LooksForNormalizedOnesInNormalizedText) {
  const auto lower = Normalizer::from_json(JsonOf(R"({"type":"Lowercase"})"));
  ASSERT_TRUE(lower);
  const auto model = model_of(R"({"a":0})");
  AddedTokens tokens;
  tokens.add({.content = "<X>", .normalized = true, .special = true}, *model);
  tokens.finish(lower->get());
  EXPECT_TRUE(tokens.any_normalized());
  EXPECT_EQ(shown(tokens, "<X>"), "(<X>)");
  EXPECT_FALSE(tokens.is_border(1));
  std::vector<AddedTokens::Part> parts;
  tokens.cut_normalized("a<x>", [&](const AddedTokens::Part& part) {
    parts.push_back(part);
    return true;
  });
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[1].id, 1U);
  EXPECT_EQ(tokens.content(1), "<x>") << "the library shows it normalized";
  EXPECT_TRUE(tokens.special("<X>"));
  EXPECT_FALSE(tokens.special("<x>"));
}

}  // namespace
}  // namespace baton::tokenizer
