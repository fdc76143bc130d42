// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/events/event.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace baton::kvcache {

// Role. The namespace of an event's blocks, which sets them apart from others with the same tokens:
//   its adapter, its salt, and the images and the like among its tokens.
// Confinement. One thread.
// Lifetime. read() again for each event, whose views must last as long.
class BlockNamespace {
 public:
  // `begins`: the event's first block begins a prompt, and so carries the salt.
  void read(const Event& event, bool begins);

  // From the adapter and the event's own salt, not from a salt that came with a predecessor.
  std::uint64_t seed() const { return seed_; }
  bool salted() const { return salted_; }
  // The hashes of the images and the like in a block. Ask for one block after the other.
  std::span<const std::uint64_t> multimodal(std::uint32_t block);
  // No block has any.
  bool plain_tokens() const { return keys_.empty(); }

 private:
  struct Key {
    std::uint32_t block;
    std::uint64_t hash;
  };
  std::uint64_t seed_ = 0;
  bool salted_ = false;
  std::size_t next_ = 0;
  std::vector<Key> keys_;
  std::vector<std::uint64_t> of_block_;
};

}  // namespace baton::kvcache
