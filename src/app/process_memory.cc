// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/process_memory.h"

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <malloc.h>
#include <optional>
#include <string_view>
#include <unistd.h>

namespace baton::app {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kPart = 2;
constexpr int kLongBlock = 1024 * 1024;
// The same ratio as in glibc.
constexpr int kTrimmedTop = 2 * kLongBlock;
constexpr std::chrono::seconds kTrimAfter{1};

std::size_t machine_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long size = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || size <= 0) return kNoLimit;
  return static_cast<std::size_t>(pages) * static_cast<std::size_t>(size);
}

// Reads a number; "max" and unreadable text mean no limit.
std::size_t limit_in(const std::string& file) {
  std::ifstream in(file);
  std::size_t limit = 0;
  return in >> limit ? limit : kNoLimit;
}

// The smallest limit of a group and its ancestors. A container may see its own group as the root.
std::size_t smallest_limit(const std::string& tree, std::string group, std::string_view file) {
  std::size_t smallest = limit_in(fmt::format("{}/{}", tree, file));
  while (!group.empty() && group != "/") {
    smallest = std::min(smallest, limit_in(fmt::format("{}{}/{}", tree, group, file)));
    group.resize(group.rfind('/') == group.npos ? 0 : group.rfind('/'));
  }
  return smallest;
}

// Reads lines like "4:memory:/group" and, in version 2, "0::/group".
std::size_t control_group_limit(const std::string& root) {
  std::size_t smallest = kNoLimit;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      smallest = std::min(smallest, smallest_limit(root + "/sys/fs/cgroup", group, "memory.max"));
    } else if (controllers.contains(",memory,")) {
      smallest = std::min(
          smallest, smallest_limit(root + "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
    }
  }
  return smallest;
}

}  // namespace

std::size_t automatic_memory_limit(const std::string& root) {
  const std::size_t all = std::min(control_group_limit(root), machine_memory());
  return all == kNoLimit ? 0 : all / kPart;
}

void give_long_blocks_back() {
  ::mallopt(M_MMAP_THRESHOLD, kLongBlock);
  ::mallopt(M_TRIM_THRESHOLD, kTrimmedTop);
}

void MemoryTrim::soon() {
  if (wanted_.exchange(true)) return;
  boost::asio::post(control_, [this] {
    if (stopped_) return;
    timer_.expires_after(kTrimAfter);
    timer_.async_wait([this](boost::system::error_code error) {
      if (error) return;
      wanted_ = false;
      ::malloc_trim(0);
    });
  });
}

void MemoryTrim::stop() {
  stopped_ = true;
  timer_.cancel();
}

}  // namespace baton::app
