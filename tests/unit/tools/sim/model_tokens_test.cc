// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/model_tokens.h"

#include "support/temporary_directory.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace baton::sim {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A model of three pieces, which is no more than its files.
struct AModelsTokens : testing::Test {
  void SetUp() override {
    write("tokenizer.json",
          R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[],)"
          R"("normalizer":null,"pre_tokenizer":null,"post_processor":null,"decoder":null,)"
          R"("model":{"type":"BPE","dropout":null,"unk_token":null,)"
          R"("continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,)"
          R"("byte_fallback":false,"ignore_merges":false,)"
          R"("vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}})");
    write("tokenizer_config.json",
          R"({"chat_template":"{% for m in messages %}{{ m.content }}{% endfor %}"})");
  }
  void write(const char* name, std::string_view text) const { directory.write(name, text); }
  static Result<TokenSource::Prompts> prompts(const TokenSource& tokens, Api api,
                                              const std::string& body) {
    return tokens.prompts(api, json::parse(body), body);
  }
  const test::TemporaryDirectory directory;
  const fs::path& folder = directory.path();
};

TEST_F(AModelsTokens, AreThoseOfItsFiles) {
  const auto tokens = ModelTokens::load(folder.string());
  ASSERT_TRUE(tokens) << tokens.error().message();
  EXPECT_TRUE((*tokens)->can_be_known());
  EXPECT_EQ(prompts(**tokens, Api::Completions, R"({"prompt":["abb",[1,0]]})").value(),
            (TokenSource::Prompts{{2, 1}, {1, 0}}));
  EXPECT_EQ(
      prompts(**tokens, Api::Chat,
              R"({"messages":[{"role":"user","content":"ab"},{"role":"user","content":"a"}]})")
          .value(),
      (TokenSource::Prompts{{2, 0}}));
}

TEST_F(AModelsTokens, BecomeTextAgain) {
  const auto tokens = ModelTokens::load(folder.string());
  ASSERT_TRUE(tokens) << tokens.error().message();
  const std::vector<TokenId> ids{2};
  EXPECT_EQ((*tokens)->text(ids, true), "ab");
}

TEST_F(AModelsTokens, RefuseWhatIsNoPrompt) {
  const auto tokens = ModelTokens::load(folder.string());
  ASSERT_TRUE(tokens) << tokens.error().message();
  EXPECT_FALSE((*tokens)->prompts(Api::Chat, json::object(), "not JSON"));
  EXPECT_FALSE(prompts(**tokens, Api::Completions, R"({"prompt":5})"));
}

TEST_F(AModelsTokens, NeedTheirFolder) {
  const auto tokens = ModelTokens::load((folder / "nowhere").string());
  ASSERT_FALSE(tokens);
  EXPECT_NE(tokens.error().message().find("nowhere"), std::string::npos)
      << tokens.error().message();
}

}  // namespace
}  // namespace baton::sim
