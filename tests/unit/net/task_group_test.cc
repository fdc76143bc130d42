// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "net/task_group.h"

#include "support/io_fixture.h"

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace baton::net {
namespace {

using boost::asio::awaitable;

struct TaskGroupTest : test::IoFixture {
  std::vector<std::string> reported;
  TaskGroup tasks{io, [this](std::exception_ptr thrown) {
                    try {
                      std::rethrow_exception(thrown);
                    } catch (const std::exception& exception) {
                      reported.emplace_back(exception.what());
                    }
                  }};
};

awaitable<void> count(int& runs) {
  ++runs;
  co_await boost::asio::post(boost::asio::use_awaitable);
  ++runs;
}

awaitable<void> throw_later() {
  co_await boost::asio::post(boost::asio::use_awaitable);
  throw std::runtime_error("a bug");
}

TEST_F(TaskGroupTest, CountsATaskUntilItEnds) {
  int runs = 0;
  EXPECT_EQ(tasks.running(), 0U);
  tasks.spawn(count(runs));
  tasks.spawn(count(runs));
  EXPECT_EQ(tasks.running(), 2U);
  EXPECT_EQ(runs, 0) << "a task starts on the I/O thread, not at once";
  run_until([&] { return tasks.running() == 0; });
  EXPECT_EQ(runs, 4);
  EXPECT_TRUE(reported.empty());
}

TEST_F(TaskGroupTest, ReportsAnExceptionAndGoesOn) {
  int runs = 0;
  tasks.spawn(throw_later());
  tasks.spawn(count(runs));
  run_until([&] { return tasks.running() == 0; });
  EXPECT_EQ(reported, std::vector<std::string>{"a bug"});
  EXPECT_EQ(runs, 2);
}

}  // namespace
}  // namespace baton::net
