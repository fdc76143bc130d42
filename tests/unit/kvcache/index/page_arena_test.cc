// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/page_arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

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

TEST(PageArena, PagesAreApartAndOfOneSize) {
  PageArena arena(SystemPages::Small);
  std::vector<std::byte*> pages;
  for (std::size_t i = 1; i <= 600; ++i) {  // more than the system is asked for at once
    pages.push_back(arena.take());
    EXPECT_EQ(arena.bytes(), i * PageArena::kPageBytes);
  }
  std::ranges::sort(pages);
  for (std::size_t i = 1; i < pages.size(); ++i) {
    EXPECT_GE(static_cast<std::size_t>(pages[i] - pages[i - 1]), PageArena::kPageBytes);
  }
  for (std::byte* page : pages) arena.give(page);
  EXPECT_EQ(arena.bytes(), 0U);
}

TEST(PageArena, ManyPagesGivenBackComeAgainEmptyOrAsTheyWere) {
  PageArena arena(SystemPages::Small);
  std::set<std::byte*> pages;
  for (int i = 0; i < 100; ++i) {
    std::byte* const page = arena.take();
    std::fill_n(page, PageArena::kPageBytes, std::byte{7});
    pages.insert(page);
  }
  for (std::byte* page : pages) arena.give(page);
  for (int i = 0; i < 100; ++i) {
    std::byte* const page = arena.take();
    EXPECT_TRUE(pages.contains(page));  // no more is taken from the system
    EXPECT_TRUE(*page == std::byte{0} || *page == std::byte{7});
  }
}

TEST(PageArena, ServesThreadsAtOnce) {
  PageArena arena(SystemPages::Small);
  std::atomic<int> shared{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 1; t <= 3; ++t) {
      threads.emplace_back([&, mark = static_cast<std::byte>(t)] {
        for (int round = 0; round < 50; ++round) {
          std::vector<std::byte*> mine;
          for (int i = 0; i < 20; ++i) {
            mine.push_back(arena.take());
            *mine.back() = mark;
          }
          for (std::byte* page : mine) {
            if (*page != mark) shared.fetch_add(1);
            arena.give(page);
          }
        }
      });
    }
  }
  EXPECT_EQ(shared.load(), 0);
  EXPECT_EQ(arena.bytes(), 0U);
}

TEST(AllocateArray, BeginsWithACacheLineWhateverItsSize) {
  for (const std::size_t bytes : {1U, 63U, 64U, 65U, 131'071U, 131'072U, 3'000'000U}) {
    std::byte* const array = allocate_array(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array) % 64, 0U) << bytes;
    array[0] = array[bytes - 1] = std::byte{1};
    free_array(array, bytes);
  }
}

}  // namespace
}  // namespace baton::kvcache
