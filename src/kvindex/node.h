// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvindex/block_hash.h"
#include "kvindex/slab.h"

#include <cstdint>

namespace baton::kvindex {

// Names a block within its shard.
using NodeNumber = std::uint32_t;
inline constexpr NodeNumber kNoNode = Slab::kNothing;

// A block that somebody holds, or that leads to one.
struct Node {
  SequenceHash key;
  NodeNumber first_child;
  NodeNumber next;        // sibling
  std::uint32_t prev;     // sibling; for a first child the parent, with kIsParent set
  std::uint32_t members;  // a SetRef: who holds it

  static constexpr std::uint32_t kIsParent = 1U << 31;
};
static_assert(sizeof(Node) == 24);

// Role. The nodes of one shard.
// Confinement. One thread at a time.
class NodeSlab {
 public:
  explicit NodeSlab(PageArena& arena) : slab_(arena, sizeof(Node)) {}
  NodeNumber take() { return slab_.take(); }
  void give(NodeNumber node) { slab_.give(node); }
  Node& operator[](NodeNumber node) const {
    return reinterpret_cast<Node*>(slab_.page(node))[Slab::index(node)];
  }

 private:
  Slab slab_;
};

// Spreads what a number tells into its higher bits; no two numbers give the same.
inline std::uint64_t mix(std::uint64_t number) { return number * 0x9E3779B97F4A7C15U; }

}  // namespace baton::kvindex
