// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "support/temporary_directory.h"
#include "unit/libs/tokenizer/small_tokenizers.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace baton::tokenizer {
namespace {

namespace fs = std::filesystem;

class TokenizerLoad : public ::testing::Test {
 protected:
  void write(std::string_view name, std::string_view text) { directory_.write(name, text); }

  const test::TemporaryDirectory directory_;
  const fs::path& folder_ = directory_.path();
};

TEST_F(TokenizerLoad, ReadsBothFilesOfAFolder) {
  write("tokenizer.json", SmallFile{.model = std::string(kLetters)}.json());
  write("tokenizer_config.json",
        R"({"tokenizer_class":"LlamaTokenizer","bos_token":"<s>","add_bos_token":true})");
  const auto tokenizer = Tokenizer::load(folder_, Transformers::V4);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  EXPECT_EQ(ids_of(**tokenizer, "abc", AddSpecial::Yes), (TokenIds{8, 6}));
}

TEST_F(TokenizerLoad, NeedsNoConfiguration) {
  write("tokenizer.json", SmallFile{.model = std::string(kLetters)}.json());
  const auto tokenizer = Tokenizer::load(folder_);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  EXPECT_EQ(ids_of(**tokenizer, "abc", AddSpecial::Yes), (TokenIds{6}));
}

TEST_F(TokenizerLoad, TakesARankFileWhereThereIsNothingElse) {
  write("qwen.tiktoken", "YQ== 0\nYg== 1\nYWI= 2\n");
  const auto tokenizer = Tokenizer::load(folder_);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  EXPECT_EQ(ids_of(**tokenizer, "abb"), (TokenIds{2, 1}));
}

TEST_F(TokenizerLoad, SaysWhatIsMissing) {
  const auto tokenizer = Tokenizer::load(folder_);
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().message(),
            folder_.string() +
                ": neither tokenizer.json nor a tiktoken rank file (tiktoken.model, *.tiktoken) is "
                "there");
}

TEST_F(TokenizerLoad, SaysWhichFileIsBroken) {
  write("tokenizer.json", "{}");
  EXPECT_EQ(Tokenizer::load(folder_).error().message(),
            "tokenizer.json: the file: \"model\" is missing");
  write("tokenizer_config.json", "[]");
  EXPECT_EQ(Tokenizer::load(folder_).error().message(),
            "tokenizer_config.json: the file is not an object");
}

}  // namespace
}  // namespace baton::tokenizer
