// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/index/slab.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace baton::kvcache {

// Role. Arrays of many sizes, of which most are small.
// Confinement. One thread at a time.
// Invariants. An array is at most half as large again as was asked for, and 16 bytes.
class ArrayPool {
 public:
  using Ref = std::uint32_t;  // what give() needs to know
  struct Array {
    std::byte* memory;
    std::size_t bytes;
    Ref ref;
  };

  explicit ArrayPool(PageArena& arena);
  ~ArrayPool();
  ArrayPool(const ArrayPool&) = delete;
  ArrayPool& operator=(const ArrayPool&) = delete;

  Array take(std::size_t bytes);
  void give(std::byte* memory, Ref ref);

  // Bytes of the large arrays, which are not in the arena's pages.
  std::size_t bytes() const { return large_bytes_; }

 private:
  std::vector<std::unique_ptr<Slab>> slabs_;
  std::unordered_map<std::byte*, std::size_t> large_;  // and its bytes
  std::size_t large_bytes_ = 0;
};

}  // namespace baton::kvcache
