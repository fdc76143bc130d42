// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/process_memory.h"

#include "support/temporary_directory.h"

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <thread>
#include <vector>

namespace baton::app {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

struct ProcessMemoryTest : testing::Test {
  void write(const std::string& file, const std::string& text) const {
    directory.write(file, text);
  }
  std::size_t limit() const { return automatic_memory_limit(root); }

  test::TemporaryDirectory directory;
  std::string root = directory.path().string();
};

TEST_F(ProcessMemoryTest, WithoutControlGroupsItIsHalfTheMachine) {
  EXPECT_GT(limit(), kMiB);
  EXPECT_EQ(limit(), automatic_memory_limit("/nowhere"));
}

TEST_F(ProcessMemoryTest, TheSmallestGroupAboveTheProcessCounts) {
  const std::size_t machine = limit();
  write("proc/self/cgroup", "0::/pods/baton\n");
  write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(limit(), machine);
  write("sys/fs/cgroup/pods/baton/memory.max", "max\n");
  write("sys/fs/cgroup/pods/memory.max", "16777216\n");
  EXPECT_EQ(limit(), 8 * kMiB);
  write("sys/fs/cgroup/pods/baton/memory.max", "8388608\n");
  EXPECT_EQ(limit(), 4 * kMiB);
}

TEST_F(ProcessMemoryTest, AContainerSeesItsGroupAsTheRoot) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "8388608\n");
  EXPECT_EQ(limit(), 4 * kMiB);
  write("proc/self/cgroup", "0::/pods/not/seen/here\n");
  EXPECT_EQ(limit(), 4 * kMiB);
}

TEST_F(ProcessMemoryTest, KnowsTheFirstVersionOfControlGroups) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:hugetlb,memory:/b\n0::/c\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/b/memory.limit_in_bytes", "4194304\n");
  EXPECT_EQ(limit(), 2 * kMiB);
}

TEST_F(ProcessMemoryTest, NonsenseInAFileOfTheKernelIsNoLimit) {
  const std::size_t machine = limit();
  for (const char* groups : {"", "\n", "0", "0:", "x:y", "0::", "::::\n", "1:cpu:/a\n"}) {
    write("proc/self/cgroup", groups);
    EXPECT_EQ(limit(), machine) << groups;
  }
  write("proc/self/cgroup", "0::/a\n");
  for (const char* text : {"", "max", "lots", "-", "\n"}) {
    write("sys/fs/cgroup/a/memory.max", text);
    EXPECT_EQ(limit(), machine) << text;
  }
}

TEST_F(ProcessMemoryTest, ALimitBeyondTheMachineIsNone) {
  const std::size_t machine = limit();
  write("proc/self/cgroup", "0::/a\n");
  write("sys/fs/cgroup/a/memory.max", "18446744073709551615\n");
  EXPECT_EQ(limit(), machine);
  write("sys/fs/cgroup/a/memory.max", "99999999999999999999999\n");
  EXPECT_EQ(limit(), machine);
}

TEST_F(ProcessMemoryTest, EveryAncestorCounts) {
  write("proc/self/cgroup", "0::/a/b/c/d\n");
  write("sys/fs/cgroup/a/memory.max", "67108864\n");
  EXPECT_EQ(limit(), 32 * kMiB);
  write("sys/fs/cgroup/a/b/c/d/memory.max", "33554432\n");
  EXPECT_EQ(limit(), 16 * kMiB);
  write("sys/fs/cgroup/a/b/memory.max", "16777216\n");
  EXPECT_EQ(limit(), 8 * kMiB);
  write("sys/fs/cgroup/memory.max", "8388608\n");
  EXPECT_EQ(limit(), 4 * kMiB);
}

TEST_F(ProcessMemoryTest, ControllersOfOtherNamesAreNotMemory) {
  write("proc/self/cgroup", "3:memory_hot:/a\n2:xmemory,cpu:/a\n");
  write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4194304\n");
  write("sys/fs/cgroup/a/memory.max", "4194304\n");
  const std::size_t other = limit();
  write("proc/self/cgroup", "3:memory:/a\n");
  EXPECT_EQ(limit(), 2 * kMiB);
  EXPECT_GT(other, 2 * kMiB);
}

TEST_F(ProcessMemoryTest, BothVersionsOfControlGroupsCount) {
  write("proc/self/cgroup", "4:memory:/b\n0::/c\n");
  write("sys/fs/cgroup/memory/b/memory.limit_in_bytes", "8388608\n");
  write("sys/fs/cgroup/c/memory.max", "4194304\n");
  EXPECT_EQ(limit(), 2 * kMiB);
  write("sys/fs/cgroup/c/memory.max", "16777216\n");
  EXPECT_EQ(limit(), 4 * kMiB);
}

TEST(MemoryTrim, WaitsOnceForAllThatAsk) {
  boost::asio::io_context control(1);
  MemoryTrim trim(control);
  for (int i = 0; i < 10; ++i) trim.soon();
  EXPECT_EQ(control.poll(), 1U);  // one of them began to wait
  for (int i = 0; i < 10; ++i) trim.soon();
  EXPECT_EQ(control.poll(), 0U);
  trim.stop();
  EXPECT_EQ(control.run(), 1U);  // the wait has ended
}

TEST(MemoryTrim, ThatIsStoppedKeepsNothingRunning) {
  boost::asio::io_context control(1);
  MemoryTrim trim(control);
  trim.soon();
  trim.stop();
  trim.soon();
  EXPECT_EQ(control.run(), 1U);  // it is seen that there is nothing to do
}

TEST(MemoryTrim, MayBeAskedForByAnyThread) {
  boost::asio::io_context control(1);
  MemoryTrim trim(control);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&trim] {
        for (int k = 0; k < 100; ++k) trim.soon();
      });
    }
  }
  EXPECT_EQ(control.poll(), 1U);
  trim.stop();
  control.restart();
  control.run();
}

}  // namespace
}  // namespace baton::app
