// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/memory/huge_pages.h"

#include <cstdint>
#include <sys/mman.h>

namespace baton::memory {
namespace {

constexpr std::size_t kSmallPage = 4096;

// The system maps and unmaps whole pages.
std::size_t whole_pages(std::size_t bytes) {
  return (bytes + kSmallPage - 1) / kSmallPage * kSmallPage;
}

}  // namespace

std::byte* map(std::size_t bytes, SystemPages pages) {
  const std::size_t size = whole_pages(bytes);
  // The rest around a range that begins at a border is given back at once.
  const std::size_t slack = pages == SystemPages::Huge && size >= kHugePage ? kHugePage : 0;
  void* const memory = mmap(nullptr, size + slack, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(memory);
  if (pages == SystemPages::Small) madvise(begin, size, MADV_NOHUGEPAGE);
  if (slack == 0) return begin;
  const std::size_t before =
      (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
  if (before > 0) munmap(begin, before);
  if (before < slack) munmap(begin + before + size, slack - before);
  madvise(begin + before, size, MADV_HUGEPAGE);
  return begin + before;
}

void unmap(std::byte* memory, std::size_t bytes) { munmap(memory, whole_pages(bytes)); }

}  // namespace baton::memory
