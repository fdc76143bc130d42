// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/next_process.h"

#include "support/temporary_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace baton::app {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe(ends.data()), 0); }
  ~Pipe() {
    for (const int end : ends) ::close(end);
  }
  std::array<int, 2> ends{};
};

int run(const std::string& script, const std::vector<Handed>& handed) {
  const auto started = start_process({"/bin/sh", "-c", script}, handed);
  EXPECT_TRUE(started);
  int status = -1;
  if (started) ::waitpid(*started, &status, 0);
  return status;
}

TEST(NextProcess, HandsDownWhatIsSaidAndNothingElse) {
  const test::TemporaryDirectory directory;
  const Pipe first;
  const Pipe second;
  // Inherited by whatever is not careful.
  const int other = ::fcntl(first.ends[1], F_DUPFD, 200);
  const std::string out = directory.path("out");
  EXPECT_EQ(run("echo one >&3; echo two >&4; echo \"$BATON_TAKEOVER\" >" + out +
                    "; [ ! -e /proc/$$/fd/" + std::to_string(other) + " ]",
                // The lowest comes last, where another one is put first.
                {{"listen", second.ends[1]}, {"admin", first.ends[1]}}),
            0);
  std::array<char, 16> buffer{};
  EXPECT_EQ(::read(second.ends[0], buffer.data(), buffer.size()), 4);
  EXPECT_EQ(std::string(buffer.data(), 4), "one\n");
  EXPECT_EQ(::read(first.ends[0], buffer.data(), buffer.size()), 4);
  EXPECT_EQ(std::string(buffer.data(), 4), "two\n");
  EXPECT_EQ(read_file(out), "listen:admin\n");
  ::close(other);
}

TEST(NextProcess, SaysWhyThereIsNone) {
  const auto started = start_process({"/no/such/program"}, {});
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message(), HasSubstr("/no/such/program"));
}

TEST(NextProcess, KnowsHowThisOneWasStarted) {
  const auto command = own_command();
  ASSERT_FALSE(command.empty());
  EXPECT_THAT(command.front(), testing::StartsWith("/"));
  EXPECT_THAT(command.front(), EndsWith("app_test"));
}

TEST(NextProcess, HasItsArgumentsAndTheEnvironment) {
  const test::TemporaryDirectory directory;
  const std::string out = directory.path("out");
  ::setenv("BATON_TEST_SAYS", "hello there", 1);
  const auto started =
      start_process({"/bin/sh", "-c", "printf '%s|' \"$BATON_TEST_SAYS\" \"$@\" >" + out, "name",
                     "a b", "", "$HOME"},
                    {});
  ::unsetenv("BATON_TEST_SAYS");
  ASSERT_TRUE(started);
  int status = -1;
  ::waitpid(*started, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(out), "hello there|a b||$HOME|");
}

TEST(NextProcess, HandsDownOneDescriptorAsOftenAsItIsNamed) {
  const Pipe pipe;
  EXPECT_EQ(run("echo a >&3; echo b >&4; echo c >&5",
                {{"x", pipe.ends[1]}, {"y", pipe.ends[1]}, {"z", pipe.ends[1]}}),
            0);
  std::array<char, 16> buffer{};
  EXPECT_EQ(::read(pipe.ends[0], buffer.data(), buffer.size()), 6);
  EXPECT_EQ(std::string(buffer.data(), 6), "a\nb\nc\n");
}

TEST(NextProcess, ADescriptorThatWouldCloseIsHandedDownToo) {
  const Pipe pipe;
  ::fcntl(pipe.ends[1], F_SETFD, FD_CLOEXEC);
  EXPECT_EQ(run("echo a >&3", {{"x", pipe.ends[1]}}), 0);
  EXPECT_NE(::fcntl(pipe.ends[1], F_GETFD) & FD_CLOEXEC, 0);  // here it still would
}

TEST(NextProcess, ADescriptorThatIsNotOpenIsAnError) {
  const int closed = ::dup(STDERR_FILENO);
  ::close(closed);
  const auto started = start_process({"/bin/true"}, std::vector<Handed>{{"x", closed}});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message(), "cannot start /bin/true: Bad file descriptor");
}

TEST(NextProcess, WhatCannotBeExecutedIsAnError) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.write("program", "no program");
  EXPECT_EQ(start_process({path}, {}).error().message(),
            "cannot start " + path + ": Permission denied");
  EXPECT_EQ(start_process({directory.path().string()}, {}).error().message(),
            "cannot start " + directory.path().string() + ": Permission denied");
}

TEST(NextProcess, AnOrphansParentEndsWell) {
  const Pipe pipe;
  const pid_t child = ::fork();
  if (child == 0) {
    become_orphan();
    const char done = 'x';
    const auto written = ::write(pipe.ends[1], &done, 1);
    ::_exit(written == 1 ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  char heard = 0;
  EXPECT_EQ(::read(pipe.ends[0], &heard, 1), 1);  // from the one that went on
  EXPECT_EQ(heard, 'x');
}

}  // namespace
}  // namespace baton::app
