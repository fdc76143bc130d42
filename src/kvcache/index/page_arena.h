// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/locks/mutex.h"
#include "libs/memory/huge_pages.h"

#include <atomic>
#include <cstddef>
#include <vector>

namespace baton::kvcache {

using memory::SystemPages;

// Role. Memory in pages of one size, given back to the system page by page; a few are kept for the
//   next requests.
// Confinement. Any thread.
// Lifetime. Outlives its pages' users; the addresses are reused, and returned at the end.
class PageArena {
 public:
  static constexpr std::size_t kPageBytes = std::size_t{16} * 1024;

  explicit PageArena(SystemPages system = SystemPages::Huge) : system_(system) {}
  ~PageArena();
  PageArena(const PageArena&) = delete;
  PageArena& operator=(const PageArena&) = delete;

  std::byte* take();
  void give(std::byte* page);

  std::size_t bytes() const { return pages_.load(std::memory_order_relaxed) * kPageBytes; }

 private:
  static constexpr std::size_t kChunkPages = 256;
  static constexpr std::size_t kMostSpare = 32;

  const SystemPages system_;
  locks::Mutex mutex_;
  std::vector<std::byte*> chunks_ GUARDED_BY(mutex_);
  std::vector<std::byte*> free_ GUARDED_BY(mutex_);   // the system has their memory
  std::vector<std::byte*> spare_ GUARDED_BY(mutex_);  // we have it still
  std::atomic<std::size_t> pages_{0};                 // in use
};

// Large arrays get pages of their own, so that freeing them returns memory to the system. All begin
// with a cache line.
std::byte* allocate_array(std::size_t bytes);
void free_array(std::byte* array, std::size_t bytes);

}  // namespace baton::kvcache
