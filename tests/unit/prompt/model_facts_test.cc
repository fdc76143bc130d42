// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/model_facts.h"

#include "support/temporary_directory.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

namespace baton::prompt {
namespace {

std::optional<std::size_t> length_of(std::string_view config, std::string_view tokenizer_config) {
  const test::TemporaryDirectory folder;
  if (!config.empty()) folder.write("config.json", config);
  if (!tokenizer_config.empty()) folder.write("tokenizer_config.json", tokenizer_config);
  return model_facts(folder.path()).value().max_model_length;
}

TEST(ModelFacts, AreUnknownWithoutFiles) {
  const test::TemporaryDirectory folder;
  const auto facts = model_facts(folder.path()).value();
  EXPECT_EQ(facts.max_model_length, std::nullopt);
  EXPECT_EQ(facts.vocabulary_size, std::nullopt);
}

TEST(ModelLength, IsTheLeastThatTheFilesSay) {
  EXPECT_EQ(length_of(R"({"max_position_embeddings":4096})", ""), 4096U);
  EXPECT_EQ(length_of(R"({"n_positions":2048,"max_seq_len":1024})", ""), 1024U);
  EXPECT_EQ(length_of(R"({"max_position_embeddings":4096})", R"({"model_max_length":512})"), 512U);
  EXPECT_EQ(length_of("", R"({"model_max_length":512})"), 512U);
  EXPECT_EQ(length_of(R"({"text_config":{"max_position_embeddings":8192}})", ""), 8192U);
}

TEST(ModelLength, IgnoresTokenizersWithoutALimit) {
  EXPECT_EQ(length_of("", R"({"model_max_length":1000000000000000019884624838656})"), std::nullopt);
  EXPECT_EQ(length_of(R"({"max_position_embeddings":4096})", R"({"model_max_length":1e30})"),
            4096U);
  EXPECT_EQ(length_of("", R"({"model_max_length":1000000000000})"), std::nullopt);
  EXPECT_EQ(length_of(R"({"max_position_embeddings":0})", R"({"model_max_length":null})"),
            std::nullopt);
}

TEST(ModelLength, IsStretchedByRopeScaling) {
  EXPECT_EQ(length_of(R"({"max_position_embeddings":163840,
              "rope_scaling":{"type":"yarn","factor":40,"original_max_position_embeddings":4096}})",
                      ""),
            163840U);
  EXPECT_EQ(length_of(R"({"max_position_embeddings":4096,
              "rope_scaling":{"rope_type":"linear","factor":2.5}})",
                      ""),
            10240U);
  EXPECT_EQ(length_of(R"({"max_position_embeddings":131072,
              "rope_scaling":{"rope_type":"llama3","factor":8}})",
                      ""),
            131072U);
  EXPECT_EQ(length_of(R"({"max_position_embeddings":4096,"rope_scaling":null})", ""), 4096U);
}

TEST(ModelFacts, KnowTheVocabularyOfTheWeights) {
  const test::TemporaryDirectory folder;
  folder.write("config.json", R"({"vocab_size":152064})");
  EXPECT_EQ(model_facts(folder.path()).value().vocabulary_size, 152064U);
}

TEST(ModelFacts, KnowWhichModelsEnginesRenderWithCode) {
  const auto renderer_of = [](std::string_view config) {
    const test::TemporaryDirectory folder;
    folder.write("config.json", config);
    return model_facts(folder.path()).value().coded_renderer;
  };
  for (const std::string type :
       {"gpt_oss", "deepseek_v32", "deepseek_v4", "deepseek_v41", "kimi_k3"}) {
    EXPECT_EQ(renderer_of(R"({"model_type":")" + type + R"("})"), type);
  }
  EXPECT_EQ(renderer_of(R"({"model_type":"deepseek_v3"})"), std::nullopt);
  EXPECT_EQ(renderer_of(R"({"model_type":1})"), std::nullopt);
  EXPECT_EQ(renderer_of("{}"), std::nullopt);
}

TEST(ModelFacts, NameAFileThatIsNotJson) {
  const test::TemporaryDirectory folder;
  folder.write("config.json", "{");
  const auto facts = model_facts(folder.path());
  ASSERT_FALSE(facts);
  EXPECT_NE(facts.error().message().find("config.json"), std::string::npos);
}

}  // namespace
}  // namespace baton::prompt
