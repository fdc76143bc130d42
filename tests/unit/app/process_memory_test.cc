// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/process_memory.h"

#include "support/temporary_directory.h"

#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace baton::app
