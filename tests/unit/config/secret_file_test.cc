// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/secret_file.h"

#include "unit/config/parsing.h"

namespace baton::config {
namespace {

using testing::HasSubstr;

TEST(SecretFile, IsReadAsItStands) {
  const TemporaryFile file(" a \r\nb\n");
  EXPECT_EQ(read_secret_file(file.path()), " a \r\nb\n");
}

TEST(SecretFile, MustBeARegularFileOfSomeSize) {
  for (const char* path : {"/nonexistent/file", "/dev/zero", "/tmp", ""}) {
    const auto text = read_secret_file(path);
    ASSERT_FALSE(text) << path;
    EXPECT_THAT(text.error(), HasSubstr("cannot read"));
  }
  const TemporaryFile most(std::string(1024 * 1024, 'x'));
  EXPECT_TRUE(read_secret_file(most.path()));
  const TemporaryFile large(std::string(1024 * 1024 + 1, 'x'));
  const auto text = read_secret_file(large.path());
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error(), HasSubstr("larger than 1 MiB"));
}

}  // namespace
}  // namespace baton::config
