// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/token_source.h"

#include "tools/sim/answer.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace baton::sim {
namespace {

using nlohmann::json;

TEST(WordTokens, AreThePiecesOfAText) {
  const WordTokens words;
  const auto prompts = words.prompts(Api::Completions, json{{"prompt", "one two"}}, {});
  ASSERT_TRUE(prompts);
  EXPECT_EQ(*prompts, (TokenSource::Prompts{{token_of("one"), token_of(" "), token_of("two")}}));
  const json chat{{"messages", {{{"role", "user"}, {"content", "hi"}}}}};
  EXPECT_EQ(words.prompts(Api::Chat, chat, {})->front(),
            (std::vector<TokenId>{token_of("<|user|>"), token_of("hi"), token_of("<|end|>"),
                                  token_of("<|assistant|>")}));
}

TEST(WordTokens, RefuseWhatIsNoPrompt) {
  const WordTokens words;
  EXPECT_FALSE(words.prompts(Api::Completions, json::object(), {}));
  EXPECT_FALSE(words.prompts(Api::Completions, json{{"prompt", nullptr}}, {}));
  EXPECT_FALSE(words.prompts(Api::Chat, json::object(), {}));
}

TEST(WordTokens, AreNoTextAgain) {
  const WordTokens words;
  EXPECT_EQ(words.text(std::vector<TokenId>{1}, false), std::nullopt);
  EXPECT_FALSE(words.can_be_known());
}

}  // namespace
}  // namespace baton::sim
