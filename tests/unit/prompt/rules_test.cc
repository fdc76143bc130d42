// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/rules.h"

#include <gtest/gtest.h>

#include <optional>

namespace baton::prompt {
namespace {

using model::Engine;
using model::Version;

TEST(Rules, OfAnUnknownReleaseAreTheNewest) {
  EXPECT_EQ(rules_of(Engine::Vllm, std::nullopt), rules_of(Engine::Vllm, Version{0, 32, 0}));
  EXPECT_EQ(rules_of(Engine::Vllm, std::nullopt), Rules());
  EXPECT_EQ(rules_of(Engine::Sglang, std::nullopt), rules_of(Engine::Sglang, Version{0, 5, 23}));
}

TEST(Rules, FollowTheReleaseThatBroughtThem) {
  const auto vllm = [](std::uint16_t minor, std::uint16_t patch = 0) {
    return rules_of(Engine::Vllm, Version{0, minor, patch});
  };
  EXPECT_EQ(vllm(19).transformers, tokenizer::Transformers::V4);
  EXPECT_EQ(vllm(19, 1).transformers, tokenizer::Transformers::V5);
  EXPECT_EQ(vllm(21).content_search, ContentSearch::Members);
  EXPECT_EQ(vllm(22).content_search, ContentSearch::Names);
  EXPECT_EQ(vllm(29).content_search, ContentSearch::Names);
  EXPECT_EQ(vllm(30).content_search, ContentSearch::Macros);
  EXPECT_FALSE(vllm(22, 1).developer_as_system);
  EXPECT_TRUE(vllm(23).developer_as_system);
  EXPECT_FALSE(vllm(25).keeps_part_members);
  EXPECT_TRUE(vllm(26).keeps_part_members);
  EXPECT_FALSE(vllm(31).drops_billing_header);
  EXPECT_EQ(rules_of(Engine::Sglang, Version{0, 5, 9}).transformers, tokenizer::Transformers::V4);
  EXPECT_EQ(rules_of(Engine::Sglang, Version{0, 5, 10}).transformers, tokenizer::Transformers::V5);
}

TEST(Rules, OfSglangLeaveRequestsMoreAsTheyAre) {
  const Rules rules = rules_of(Engine::Sglang, std::nullopt);
  EXPECT_FALSE(rules.texts_in_parts);
  EXPECT_FALSE(rules.developer_as_system);
  EXPECT_TRUE(rules.keeps_unset_variables);
}

TEST(Rules, CanBeTold) {
  EXPECT_EQ(to_string(rules_of(Engine::Vllm, Version{0, 18, 0})),
            "transformers 4, developer messages as they are");
  EXPECT_EQ(to_string(Rules()), "transformers 5, developer messages as system");
}

}  // namespace
}  // namespace baton::prompt
