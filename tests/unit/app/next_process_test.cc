// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/next_process.h"

#include "support/temporary_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sys/wait.h>
#include <unistd.h>

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

}  // namespace
}  // namespace baton::app
