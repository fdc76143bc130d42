// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/page_arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace baton::kvcache {
namespace {

// What the system was asked of the memory there, in the short names of proc(5).
std::string asked_of(const std::byte* memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  std::ifstream maps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      here = begin <= address && address < end;
    } else if (here && line.starts_with("VmFlags:")) {
      return line;
    }
  }
  return {};
}

bool system_has_huge_pages() {
  return std::filesystem::exists("/sys/kernel/mm/transparent_hugepage/enabled");
}

TEST(PageArena, AsksForHugePages) {
  PageArena arena;
  EXPECT_EQ(asked_of(arena.take()).contains(" hg"), system_has_huge_pages());
}

TEST(PageArena, AsksForSmallPagesForThreadsThatMustNotStop) {
  PageArena arena(SystemPages::Small);
  EXPECT_EQ(asked_of(arena.take()).contains(" nh"), system_has_huge_pages());
}

TEST(PageArena, UsesAPageAgain) {
  PageArena arena(SystemPages::Small);
  std::byte* const page = arena.take();
  page[PageArena::kPageBytes - 1] = std::byte{1};
  EXPECT_EQ(arena.bytes(), PageArena::kPageBytes);
  arena.give(page);
  EXPECT_EQ(arena.bytes(), 0U);
  EXPECT_EQ(arena.take(), page);
}

}  // namespace
}  // namespace baton::kvcache
