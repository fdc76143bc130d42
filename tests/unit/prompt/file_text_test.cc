// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/file_text.h"

#include "support/temporary_directory.h"

#include <gtest/gtest.h>

namespace baton::prompt {
namespace {

TEST(FileText, IsAllOfTheFile) {
  const test::TemporaryDirectory folder;
  const auto path = folder.write("a", std::string("one\r\ntwo\0three", 14));
  const auto text = file_text(path);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, std::string("one\r\ntwo\0three", 14));
  EXPECT_EQ(file_text(folder.write("empty", "")).value(), "");
}

TEST(FileText, IsNothingWhereThereIsNoFile) {
  const test::TemporaryDirectory folder;
  EXPECT_EQ(file_text(folder.path() / "none").value(), std::nullopt);
}

TEST(FileText, NamesAFileThatCannotBeRead) {
  const test::TemporaryDirectory folder;
  const auto text = file_text(folder.path());  // a folder is no file
  ASSERT_FALSE(text);
  EXPECT_NE(text.error().message().find(folder.path().string()), std::string::npos);
}

}  // namespace
}  // namespace baton::prompt
