// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "net/file_watch.h"

#include "support/io_fixture.h"
#include "support/temporary_directory.h"

#include <gtest/gtest.h>

#include <optional>
#include <sys/resource.h>
#include <sys/stat.h>

namespace baton::net {
namespace {

struct FileWatchTest : test::IoFixture {
  void watch(const std::string& name) {
    file.emplace(io, (directory.path() / name).string(), [this] { ++calls; });
    EXPECT_TRUE(file->start());
  }
  void expect_call(int number) {
    run_until([&] { return calls >= number; });
    EXPECT_EQ(calls, number);
  }
  void expect_no_call() {
    const int before = calls;
    run_for(4 * FileWatch::kQuiet);
    EXPECT_EQ(calls, before);
  }

  test::TemporaryDirectory directory;
  int calls = 0;
  std::optional<FileWatch> file;
};

TEST_F(FileWatchTest, TellsOfAWriteInPlace) {
  directory.write("file", "one");
  watch("file");
  expect_no_call();
  directory.write("file", "two, longer");
  expect_call(1);
  expect_no_call();
  directory.write("file", "TWO, LONGER");  // as long as before
  expect_call(2);
}

TEST_F(FileWatchTest, ABurstIsOneCall) {
  directory.write("file", "");
  watch("file");
  for (int i = 0; i < 20; ++i) {
    directory.write("file", std::string(static_cast<std::size_t>(i), 'x'));
  }
  expect_call(1);
  expect_no_call();
}

TEST_F(FileWatchTest, WritesThatDoNotEndDoNotSilenceIt) {
  directory.write("file", "");
  watch("file");
  std::size_t size = 0;
  run_until([&] {
    directory.write("file", std::string(++size, 'x'));
    return calls > 0;
  });
}

TEST_F(FileWatchTest, TellsOfAReplacementAndOfWhatFollowsIt) {
  directory.write("file", "one");
  watch("file");
  directory.write("new", "two");
  directory.rename("new", "file");
  expect_call(1);
  directory.write("file", "two in place");
  expect_call(2);
}

TEST_F(FileWatchTest, TellsOfASwappedLinkAsKubernetesDoesIt) {
  directory.write("..2024_1/file", "same");
  directory.link("..2024_1", "..data");
  directory.link("..data/file", "file");
  watch("file");
  for (int i = 2; i < 5; ++i) {
    const std::string next = "..2024_" + std::to_string(i);
    directory.write(next + "/file", "same");
    directory.link(next, "..data_tmp");
    directory.rename("..data_tmp", "..data");
    directory.remove("..2024_" + std::to_string(i - 1));
    expect_call(i - 1);
    expect_no_call();
  }
  directory.write("..2024_4/file", "written where it really is");
  expect_call(4);
}

TEST_F(FileWatchTest, SaysNothingOfOtherFiles) {
  directory.write("file", "one");
  directory.write("other", "one");
  watch("file");
  directory.write("other", "two");
  directory.write("new", "three");
  directory.rename("new", "newer");
  directory.remove("other");
  expect_no_call();
}

TEST_F(FileWatchTest, SaysNothingOfANameThatLeadsToTheSameFileAgain) {
  directory.write("file", "one");
  watch("file");
  directory.rename("file", "away");
  directory.rename("away", "file");
  expect_no_call();
}

TEST_F(FileWatchTest, AFileMayComeAndGo) {
  watch("file");
  expect_no_call();
  directory.write("file", "one");
  expect_call(1);
  directory.remove("file");
  expect_call(2);
  directory.write("file", "two");
  expect_call(3);
}

TEST_F(FileWatchTest, AnyPartOfTheWayMayGoAndComeBack) {
  directory.write("a/b/file", "one");
  watch("a/b/file");
  directory.remove("a");
  expect_call(1);
  directory.write("a/b/file", "two");
  expect_call(2);
  directory.write("c/b/file", "three");
  directory.rename("a", "old");
  directory.rename("c", "a");
  expect_call(3);
  directory.write("a/b/file", "four!");
  expect_call(4);
}

TEST_F(FileWatchTest, TellsThatAFileMayHaveBecomeReadable) {
  directory.write("file", "one");
  watch("file");
  ASSERT_EQ(::chmod((directory.path() / "file").c_str(), 0600), 0);
  expect_call(1);
}

TEST_F(FileWatchTest, LooksForItselfWhereTheSystemGivesNoNotice) {
  directory.write("file", "one");
  file.emplace(io, (directory.path() / "file").string(), [this] { ++calls; });
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit none = limit;
  none.rlim_cur = 0;  // what is open stays open
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto started = file->start();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message().find("Too many open files"), std::string::npos);
  directory.write("file", "two, longer");
  expect_call(1);
  directory.write("file", "three, longer still");
  expect_call(2);
}

TEST_F(FileWatchTest, SaysNothingOnceStopped) {
  directory.write("file", "one");
  watch("file");
  directory.write("file", "two, longer");
  io.poll();
  file->stop();
  expect_no_call();
}

TEST_F(FileWatchTest, MayBeDestroyedByItsCallback) {
  directory.write("file", "one");
  file.emplace(io, (directory.path() / "file").string(), [this] {
    ++calls;
    file.reset();
  });
  EXPECT_TRUE(file->start());
  directory.write("file", "two, longer");
  expect_call(1);
  directory.write("file", "three, longer still");
  expect_no_call();
}

}  // namespace
}  // namespace baton::net
