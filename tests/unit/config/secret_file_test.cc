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

TEST(SecretFile, SaysWhyItCannotBeRead) {
  EXPECT_EQ(read_secret_file("/nonexistent/file").error(),
            "cannot read '/nonexistent/file': there is no such file; check the path and its "
            "permissions");
  const test::TemporaryDirectory directory;
  EXPECT_THAT(read_secret_file(directory.path()).error(),
              testing::StartsWith("cannot read '" + directory.path().string().substr(0, 60)));
}

TEST(SecretFile, MayBeEmptyOrBehindALink) {
  const test::TemporaryDirectory directory;
  EXPECT_EQ(read_secret_file(directory.write("empty", "")), "");
  directory.write("secret", "s3cret");
  directory.link("secret", "link");
  EXPECT_EQ(read_secret_file(directory.path("link")), "s3cret");
  directory.link("nothing", "dangling");
  EXPECT_FALSE(read_secret_file(directory.path("dangling")));
}

TEST(SecretFile, IsAnyBytes) {
  const std::string bytes("a\0\xff\n", 4);
  const TemporaryFile file(bytes);
  EXPECT_EQ(read_secret_file(file.path()), bytes);
}

TEST(SecretFile, ThatIsReplacedIsReadAnew) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.write("secret", "old");
  EXPECT_EQ(read_secret_file(path), "old");
  directory.write("next", "new");
  directory.rename("next", "secret");
  EXPECT_EQ(read_secret_file(path), "new");
}

}  // namespace
}  // namespace baton::config
