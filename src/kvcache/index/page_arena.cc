// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/page_arena.h"

#include <cstdlib>
#include <new>
#include <sys/mman.h>

namespace baton::kvcache {
namespace {

constexpr std::size_t kCacheLine = 64;
// From here on an array is mapped by itself.
constexpr std::size_t kMappedBytes = std::size_t{128} * 1024;

}  // namespace

PageArena::~PageArena() {
  for (std::byte* chunk : chunks_) memory::unmap(chunk, kChunkPages * kPageBytes);
}

std::byte* PageArena::take() {
  const locks::Lock hold(mutex_);
  pages_.fetch_add(1, std::memory_order_relaxed);
  if (!spare_.empty()) {
    std::byte* page = spare_.back();
    spare_.pop_back();
    return page;
  }
  if (free_.empty()) {
    std::byte* chunk = memory::map(kChunkPages * kPageBytes, system_);
    chunks_.push_back(chunk);
    for (std::size_t i = kChunkPages; i-- > 0;) free_.push_back(chunk + i * kPageBytes);
  }
  std::byte* page = free_.back();
  free_.pop_back();
  return page;
}

void PageArena::give(std::byte* page) {
  {
    const locks::Lock hold(mutex_);
    pages_.fetch_sub(1, std::memory_order_relaxed);
    if (spare_.size() < kMostSpare) {
      spare_.push_back(page);
      return;
    }
  }
  madvise(page, kPageBytes, MADV_DONTNEED);
  const locks::Lock hold(mutex_);
  free_.push_back(page);
}

std::byte* allocate_array(std::size_t bytes) {
  if (bytes >= kMappedBytes) return memory::map(bytes, SystemPages::Huge);
  void* memory = std::aligned_alloc(kCacheLine, (bytes + kCacheLine - 1) / kCacheLine * kCacheLine);
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<std::byte*>(memory);
}

void free_array(std::byte* array, std::size_t bytes) {
  if (bytes >= kMappedBytes) {
    memory::unmap(array, bytes);
  } else {
    std::free(array);
  }
}

}  // namespace baton::kvcache
