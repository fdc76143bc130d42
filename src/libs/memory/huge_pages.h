// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <new>

namespace baton::memory {

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

// The page size of the system's memory. Tables are read at random: with huge pages, if the system
// has them, a look-up does not also wait for the page's address to be found. But the first touch of
// one clears 2 MiB, which takes milliseconds if a hypervisor has to find the memory first; small
// ones are for threads that must never stop so long.
enum class SystemPages { Huge, Small };

// Maps memory of zeros. From kHugePage on, a range with huge pages begins at a border of theirs.
// The kind of pages is a hint: a system that ignores it gives small ones. Throws std::bad_alloc.
std::byte* map(std::size_t bytes, SystemPages pages);
// Requires: the size that was mapped.
void unmap(std::byte* memory, std::size_t bytes);

// Role. An allocator for a large table: huge pages from kHugePage on, operator new below.
// Confinement. Any thread.
template <class T>
struct HugePages {
  using value_type = T;

  HugePages() = default;
  template <class Other>
  HugePages(const HugePages<Other>&) {}

  T* allocate(std::size_t count) {
    const std::size_t size = count * sizeof(T);
    if (size < kHugePage) return static_cast<T*>(::operator new(size));
    return reinterpret_cast<T*>(map(size, SystemPages::Huge));
  }
  void deallocate(T* memory, std::size_t count) {
    const std::size_t size = count * sizeof(T);
    if (size < kHugePage) {
      ::operator delete(memory, size);
    } else {
      unmap(reinterpret_cast<std::byte*>(memory), size);
    }
  }

  template <class Other>
  bool operator==(const HugePages<Other>&) const {
    return true;
  }
};

}  // namespace baton::memory
