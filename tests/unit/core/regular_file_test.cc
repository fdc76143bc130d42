// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "core/regular_file.h"

#include "support/temporary_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace baton {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

struct RegularFile : testing::Test {
  std::string write(std::string_view text) const { return directory.write("file", text); }
  static std::string refused(const std::string& path, std::size_t most = 1000) {
    const auto text = read_regular_file(path, most);
    if (text) return "it was read";
    return text.error().message();
  }
  const test::TemporaryDirectory directory;
  const fs::path& folder = directory.path();
};

TEST_F(RegularFile, IsReadAsItStands) {
  const std::string text("one\r\ntwo\0three", 14);
  EXPECT_EQ(read_regular_file(write(text), 14).value(), text);
  EXPECT_EQ(read_regular_file(write(""), 0).value(), "");
}

TEST_F(RegularFile, IsNothingWhereThereIsNone) {
  EXPECT_EQ(read_regular_file((folder / "none").string(), 10).value(), std::nullopt);
  EXPECT_EQ(read_regular_file(write("x") + "/below", 10).value(), std::nullopt);
  EXPECT_EQ(read_regular_file("", 10).value(), std::nullopt);
}

TEST_F(RegularFile, IsReadThroughALink) {
  fs::create_symlink(write("here"), folder / "link");
  EXPECT_EQ(read_regular_file((folder / "link").string(), 10).value(), "here");
}

TEST_F(RegularFile, IsNoLargerThanAllowed) {
  EXPECT_THAT(refused(write("12345"), 4), "it is larger than 4 bytes");
  EXPECT_THAT(refused(write(std::string((1 << 20) + 1, 'x')), 1 << 20), "it is larger than 1 MiB");
  // Its size is told as nothing, and only reading shows it.
  EXPECT_THAT(refused("/proc/self/status", 10), "it is larger than 10 bytes");
}

TEST_F(RegularFile, APipeIsNotWaitedFor) {
  const std::string path = (folder / "pipe").string();
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(refused(path), "it is a pipe, not a regular file");
}

TEST_F(RegularFile, NothingElseIsRead) {
  EXPECT_EQ(refused(folder.string()), "it is a directory, not a regular file");
  EXPECT_EQ(refused("/dev/zero"), "it is a device, not a regular file");
  const std::string path = (folder / "socket").string();
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_THAT(refused(path), StartsWith("it is a socket"));
  ::close(socket);
}

TEST_F(RegularFile, SaysWhatTheSystemSays) {
  EXPECT_THAT(refused(std::string(5000, 'x')), HasSubstr("too long"));
}

}  // namespace
}  // namespace baton
