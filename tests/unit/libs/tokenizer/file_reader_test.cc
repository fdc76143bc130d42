// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/file_reader.h"

#include "support/temporary_directory.h"

#include <gtest/gtest.h>

#include <string>

namespace baton::tokenizer {
namespace {

TEST(FileReader, ReadsAWholeFile) {
  const test::TemporaryDirectory directory;
  const std::string text("a\0b\n", 4);
  EXPECT_EQ(read_file(directory.write("file", text), 4).value(), text);
  EXPECT_EQ(read_file(directory.write("empty", ""), 0).value(), "");
}

TEST(FileReader, FindsNoFile) {
  const test::TemporaryDirectory directory;
  EXPECT_EQ(read_file(directory.path() / "absent", 10).value(), std::nullopt);
  EXPECT_EQ(read_file(directory.write("file", "") + "/below", 10).value(), std::nullopt);
}

TEST(FileReader, SaysWhyAFileCannotBeRead) {
  const test::TemporaryDirectory directory;
  EXPECT_EQ(read_file(directory.write("file", "12345"), 4).error(), "it is larger than 4 bytes");
  EXPECT_EQ(read_file(directory.path(), 4).error(), "it is not a regular file");
}

}  // namespace
}  // namespace baton::tokenizer
