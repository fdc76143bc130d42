// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <new>
#include <sys/mman.h>

namespace baton::tokenizer {

// Role. Memory for a large table that is looked up at random: on huge pages where the kernel has
//   them, because with small ones each look also waits for the page's address to be found.
// Confinement. Any thread.
template <class T>
struct HugePages {
  using value_type = T;

  HugePages() = default;
  template <class Other>
  HugePages(const HugePages<Other>&) {}

  T* allocate(std::size_t count) {
    const std::size_t size = count * sizeof(T);
    if (size < kPage) return static_cast<T*>(::operator new(size));
    void* const memory = ::operator new(size, std::align_val_t{kPage});
    // Only a hint: if it is not granted, everything works as well.
    (void)::madvise(memory, size, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) {
    const std::size_t size = count * sizeof(T);
    if (size < kPage) {
      ::operator delete(memory, size);
    } else {
      ::operator delete(memory, size, std::align_val_t{kPage});
    }
  }

  template <class Other>
  bool operator==(const HugePages<Other>&) const {
    return true;
  }

 private:
  static constexpr std::size_t kPage = std::size_t{2} << 20;
};

}  // namespace baton::tokenizer
