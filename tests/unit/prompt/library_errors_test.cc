// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/library_errors.h"

#include <gtest/gtest.h>

#include <memory>

namespace baton::prompt {
namespace {

TEST(LibraryErrors, KeepCodeAndMessageThatClientsSee) {
  const auto of_jinja = [](jinja::ErrorCode code) {
    return as_result(jinja::Result<int>(jinja::fail(code, "why"))).error();
  };
  EXPECT_EQ(of_jinja(jinja::ErrorCode::InvalidTemplate).code(), Errc::InvalidRequest);
  EXPECT_EQ(of_jinja(jinja::ErrorCode::RenderFailed).code(), Errc::InvalidRequest);
  EXPECT_EQ(of_jinja(jinja::ErrorCode::InvalidJson).code(), Errc::InvalidJson);
  EXPECT_EQ(of_jinja(jinja::ErrorCode::Stopped).code(), Errc::ClientGone);
  EXPECT_EQ(of_jinja(jinja::ErrorCode::Stopped).message(), "why");

  const auto of_tokenizer = [](tokenizer::ErrorCode code) {
    return as_result(tokenizer::Result<int>(tokenizer::fail(code, "why"))).error();
  };
  EXPECT_EQ(of_tokenizer(tokenizer::ErrorCode::InvalidFile).code(), Errc::InvalidRequest);
  EXPECT_EQ(of_tokenizer(tokenizer::ErrorCode::InvalidText).code(), Errc::InvalidRequest);
  EXPECT_EQ(of_tokenizer(tokenizer::ErrorCode::TooCostly).code(), Errc::PayloadTooLarge);
  EXPECT_EQ(of_tokenizer(tokenizer::ErrorCode::Stopped).code(), Errc::ClientGone);
  EXPECT_EQ(of_tokenizer(tokenizer::ErrorCode::TooCostly).message(), "why");
}

TEST(LibraryErrors, PassResultsOn) {
  auto passed = as_result(tokenizer::Result<std::unique_ptr<int>>(std::make_unique<int>(5)));
  EXPECT_EQ(**passed, 5);
}

}  // namespace
}  // namespace baton::prompt
