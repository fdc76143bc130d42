// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/snapshot_file.h"

#include "support/temporary_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>

namespace baton::kvcache {
namespace {

using testing::HasSubstr;

class SnapshotFileTest : public testing::Test {
 protected:
  std::string text() const {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  void put(const std::string& bytes) const { std::ofstream(file, std::ios::binary) << bytes; }
  std::string why() const {
    const auto read = read_snapshot_file(file);
    return read ? "" : read.error().message();
  }

  const test::TemporaryDirectory directory;
  const std::string folder = directory.path();
  const std::string file = folder + "/kv-index";
  const std::vector<HolderSnapshot> holders{
      {.worker = "a",
       .rank = 1,
       .position = {.sequence = 7, .payload_hash = 8},
       .shape = {.size = 16},
       .blocks = {{.engine = 1, .sequence = 2, .parent = {}, .first = true, .tiers = 1},
                  {.engine = 3, .sequence = 4, .parent = 1, .first = false, .tiers = 3}}},
      {.worker = "b", .rank = 0, .position = {}, .shape = {.size = 1}, .blocks = {}}};
};

TEST_F(SnapshotFileTest, IsReadAsItWasWritten) {
  const auto bytes = write_snapshot_file(file, holders);
  ASSERT_TRUE(bytes) << bytes.error().message();
  EXPECT_EQ(*bytes, std::filesystem::file_size(file));
  const auto read = read_snapshot_file(file);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, holders);
}

TEST_F(SnapshotFileTest, OfNoFileNothingIsRead) {
  const auto read = read_snapshot_file(file);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_TRUE(read->empty());
}

TEST_F(SnapshotFileTest, ReplacesTheOneBeforeAndLeavesNothingElse) {
  ASSERT_TRUE(write_snapshot_file(file, holders));
  ASSERT_TRUE(write_snapshot_file(file, {}));
  EXPECT_TRUE(read_snapshot_file(file)->empty());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST_F(SnapshotFileTest, IsForNobodyElse) {
  ASSERT_TRUE(write_snapshot_file(file, holders));
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(file).permissions() & (perms::group_all | perms::others_all),
            perms::none);
}

TEST_F(SnapshotFileTest, SaysWhyAFileCannotBeUsed) {
  ASSERT_TRUE(write_snapshot_file(file, holders));
  const std::string good = text();
  put("something else");
  EXPECT_THAT(why(), HasSubstr("no saved index"));
  put(good.substr(0, good.size() - 5));
  EXPECT_THAT(why(), HasSubstr("checksum"));
  put("");
  EXPECT_THAT(why(), HasSubstr("no saved index"));
  std::string corrupt = good;
  corrupt[good.size() / 2] ^= 1;
  put(corrupt);
  EXPECT_THAT(why(), HasSubstr("checksum"));
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  EXPECT_THAT(why(), HasSubstr(file));
}

TEST_F(SnapshotFileTest, WaitsForNoPipe) {
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_THAT(why(), HasSubstr("it is a pipe"));
  ASSERT_EQ(::mkfifo((file + ".tmp").c_str(), 0600), 0);
  EXPECT_FALSE(write_snapshot_file(file, holders));
}

TEST_F(SnapshotFileTest, SaysWhyAFileCannotBeWrittenAndLeavesTheOldOne) {
  const auto nowhere = write_snapshot_file(folder + "/missing/kv-index", holders);
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().message(), HasSubstr("No such file"));
  std::filesystem::create_directory(file);
  EXPECT_FALSE(write_snapshot_file(file, holders));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

}  // namespace
}  // namespace baton::kvcache
