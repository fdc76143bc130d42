// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// The new process' side of a restart, in a process of its own: it leaves its parent.
#include "app/predecessor.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <functional>
#include <memory>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace baton::app {
namespace {

using Progress = Predecessor::Progress;
using testing::ElementsAre;
using testing::IsEmpty;

struct PredecessorTest : testing::Test {
  // Runs the new process' side with this progress, until it has waited enough. The child that was
  // forked ends as soon as it is an orphan; the orphan ends when the channel closes at the latest.
  void start(const std::function<Progress()>& progress) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(ends[0]);
      ::alarm(20);  // whatever happens, nothing is left of it
      {
        boost::asio::io_context io(1);
        Predecessor predecessor(ends[1]);
        boost::asio::co_spawn(io, predecessor.wait(progress), boost::asio::detached);
        io.run();
      }
      ::_exit(0);
    }
    ::close(ends[1]);
    here = std::make_unique<LineChannel>(ends[0]);
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    parent = child;
  }
  // The lines that come until there are so many, or until the other end closes.
  std::vector<std::string> lines(std::size_t count) {
    std::vector<std::string> heard;
    while (heard.size() < count && !here->ended()) {
      pollfd readable{here->descriptor(), POLLIN, 0};
      if (::poll(&readable, 1, 10'000) <= 0) break;
      for (std::string& line : here->receive()) heard.push_back(std::move(line));
    }
    return heard;
  }

  std::unique_ptr<LineChannel> here;
  pid_t parent = 0;
};

TEST_F(PredecessorTest, SaysWhoItIsOnceItHasLeftItsParent) {
  start([] { return Progress::Starting; });
  const auto heard = lines(1);
  ASSERT_EQ(heard.size(), 1U);
  ASSERT_TRUE(heard[0].starts_with("pid ")) << heard[0];
  const pid_t said = std::stoi(heard[0].substr(4));
  EXPECT_NE(said, parent);  // which has ended
  EXPECT_EQ(::kill(said, 0), 0);
  EXPECT_TRUE(here->send("go"));
  EXPECT_THAT(lines(100), IsEmpty());
  EXPECT_TRUE(here->ended());
}

TEST_F(PredecessorTest, SaysEachStepOnce) {
  // Twice each: it is asked every few milliseconds, and tells what is new.
  start([steps = std::vector{Progress::Starting, Progress::Checked, Progress::Checked,
                             Progress::Ready, Progress::Ready, Progress::Ready, Progress::Ended},
         at = std::size_t{0}]() mutable { return steps[std::min(at++, steps.size() - 1)]; });
  auto heard = lines(100);  // until it ends by itself
  ASSERT_FALSE(heard.empty());
  heard.erase(heard.begin());
  EXPECT_THAT(heard, ElementsAre("checked", "ready"));
  EXPECT_TRUE(here->ended());
}

TEST_F(PredecessorTest, SaysThatItIsReadyNoMoreAndThenAgain) {
  start([steps = std::vector{Progress::Ready, Progress::Checked, Progress::Ready, Progress::Ended},
         at = std::size_t{0}]() mutable { return steps[std::min(at++, steps.size() - 1)]; });
  auto heard = lines(100);
  ASSERT_FALSE(heard.empty());
  heard.erase(heard.begin());
  EXPECT_THAT(heard, ElementsAre("ready", "checked", "ready"));
}

TEST_F(PredecessorTest, ServesAloneWhereThePredecessorIsGone) {
  start([] { return Progress::Starting; });
  EXPECT_EQ(lines(1).size(), 1U);
  // Half closed: this end still hears when the other process has ended.
  EXPECT_EQ(::shutdown(here->descriptor(), SHUT_WR), 0);
  EXPECT_THAT(lines(100), IsEmpty());
  EXPECT_TRUE(here->ended());
}

}  // namespace
}  // namespace baton::app
