// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "net/file_way.h"

#include "support/temporary_directory.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace baton::net {
namespace {

namespace fs = std::filesystem;

struct FileWayTest : testing::Test {
  bool passes(const FileWay& way, const fs::path& looked_up) const {
    return std::ranges::find(way.steps, FileWay::Step{(root / looked_up).parent_path(),
                                                      looked_up.filename().string()}) !=
           way.steps.end();
  }

  test::TemporaryDirectory directory;
  const fs::path root = directory.path();
};

TEST_F(FileWayTest, PassesEveryDirectoryFromTheRoot) {
  directory.write("a/file", "x");
  const FileWay way = find_way(root / "a/file");
  EXPECT_EQ(way.file, root / "a/file");
  EXPECT_EQ(way.steps.front().directory, "/");
  EXPECT_TRUE(passes(way, "a"));
  EXPECT_TRUE(passes(way, "a/file"));
}

TEST_F(FileWayTest, FollowsLinksOfFilesAndDirectories) {
  directory.write("..one/file", "x");
  directory.link("..one", "..data");
  directory.link("..data/file", "file");
  directory.link(root / "x/../file", "absolute");
  fs::create_directory(root / "x");
  const FileWay way = find_way(root / "absolute");
  EXPECT_EQ(way.file, root / "..one/file");
  for (const char* name : {"absolute", "x", "file", "..data", "..one", "..one/file"}) {
    EXPECT_TRUE(passes(way, name)) << name;
  }
}

TEST_F(FileWayTest, EndsAtTheFirstMissingName) {
  const FileWay way = find_way(root / "gone/file");
  EXPECT_EQ(way.file, "");
  EXPECT_EQ(way.steps.back(), (FileWay::Step{root, "gone"}));
}

TEST_F(FileWayTest, LeadsNowhereInACircleOrThroughAFile) {
  directory.link("b", "a");
  directory.link("a", "b");
  EXPECT_EQ(find_way(root / "a").file, "");
  directory.write("file", "x");
  EXPECT_EQ(find_way(root / "file/below").file, "");
  EXPECT_EQ(find_way(root).file, "");
}

}  // namespace
}  // namespace baton::net
