// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/tokenizers.h"

#include "support/tiny_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace baton::pipeline {
namespace {

using testing::AllOf;
using testing::HasSubstr;

config::Model model_with(std::string name, config::Tokens tokens) {
  config::Model model;
  model.name = std::move(name);
  model.tokens = std::move(tokens);
  return model;
}

struct TokenizersTest : testing::Test {
  Result<void> configure(std::vector<config::Model> models) { return tokenizers.configure(models); }
  config::Tokens local() const {
    return {.by = model::Tokenize::Local, .tokenizer = files.folder(), .chat_template = {}};
  }

  test::TinyModel files;
  telemetry::Registry metrics;
  Tokenizers tokenizers{std::size_t{1} << 20, metrics};
};

TEST_F(TokenizersTest, ReadsWhatAModelNames) {
  ASSERT_TRUE(configure({model_with("m", local()), model_with("off", {})}));
  const auto tokens = tokenizers.find("m");
  ASSERT_TRUE(tokens && tokens->preprocessor);
  EXPECT_EQ(tokens->preprocessor->tokenizer().encode("hi", {}).value(),
            (tokenizer::TokenIds{260, 256}));
  EXPECT_EQ(tokenizers.find("off"), nullptr);
  EXPECT_EQ(tokenizers.find("nobody"), nullptr);
}

TEST_F(TokenizersTest, AModelWhoseEngineIsAskedNeedsNoFiles) {
  ASSERT_TRUE(configure(
      {model_with("m", {.by = model::Tokenize::Engine, .tokenizer = {}, .chat_template = {}})}));
  ASSERT_NE(tokenizers.find("m"), nullptr);
  EXPECT_EQ(tokenizers.find("m")->preprocessor, nullptr);
}

TEST_F(TokenizersTest, WhatCannotBeReadChangesNothingAndIsNamed) {
  ASSERT_TRUE(configure({model_with("m", local())}));
  const auto before = tokenizers.find("m");
  config::Tokens missing = local();
  missing.tokenizer = files.folder() + "/missing";
  const auto refused = configure({model_with("m", local()), model_with("n", missing)});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), AllOf(HasSubstr("\"n\""), HasSubstr(missing.tokenizer)));
  EXPECT_EQ(tokenizers.find("m"), before);
  EXPECT_EQ(tokenizers.find("n"), nullptr);
}

TEST_F(TokenizersTest, ReadsAgainOnlyWhatHasChanged) {
  ASSERT_TRUE(configure({model_with("m", local())}));
  const auto before = tokenizers.find("m");
  ASSERT_TRUE(configure({model_with("m", local()), model_with("n", local())}));
  EXPECT_EQ(tokenizers.find("m"), before);
  files.write("chat_template.jinja", "changed");
  ASSERT_TRUE(configure({model_with("m", local())}));
  EXPECT_NE(tokenizers.find("m"), before);
  EXPECT_EQ(tokenizers.find("n"), nullptr);
}

TEST_F(TokenizersTest, TellsWhatItsMemoryHolds) {
  ASSERT_TRUE(configure({model_with("m", local())}));
  EXPECT_THAT(metrics.render(), HasSubstr("baton_token_cache_hits{model=\"m\"} 0"));
  EXPECT_THAT(metrics.render(), HasSubstr("baton_token_cache_misses{model=\"m\"} 0"));
  EXPECT_THAT(metrics.render(), HasSubstr("baton_token_cache_bytes{model=\"m\"} "));
}

}  // namespace
}  // namespace baton::pipeline
