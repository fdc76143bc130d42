// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvindex/block_table.h"
#include "kvindex/fair_lock.h"
#include "kvindex/index.h"
#include "kvindex/member_sets.h"
#include "kvindex/node.h"
#include "kvindex/slots.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace baton::kvindex {

// How many different blocks there are in all shards, and the most there may be.
struct BlockCount {
  std::size_t most;
  std::atomic<std::size_t> known{0};  // held, or leading to one that is

  bool take() {
    std::size_t now = known.load(std::memory_order_relaxed);
    while (now < most) {
      if (known.compare_exchange_weak(now, now + 1, std::memory_order_relaxed)) return true;
    }
    return false;
  }
};

// Role. All prompts that begin with some blocks: a tree of blocks, found by their hashes.
// Confinement. Whoever holds its lock.
// Invariants. Along a path no holder's reach falls: so the holders of a block that have all that
//   comes before it are among those of the block before. A block lives while it has members or
//   children.
class Shard {
 public:
  Shard(PageArena& arena, BlockCount& count);
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  FairLock& lock() const { return lock_; }

  void prefetch_line(SequenceHash key) const { table_.prefetch_line(key); }
  void prefetch_found(SequenceHash key) const { table_.prefetch_node(key); }
  void prefetch_node(NodeNumber node) const { __builtin_prefetch(&nodes_[node]); }
  // Requires: prefetch_node() has done its work. What a removal will touch.
  void prefetch_around(NodeNumber node) const;

  NodeNumber find(SequenceHash key) const { return table_.find(key); }
  SequenceHash key(NodeNumber node) const { return nodes_[node].key; }
  // kNoNode when there is no room. parent: kNoNode for a first block.
  NodeNumber make(SequenceHash key, NodeNumber parent);
  // Undoes make() where nobody came to hold it.
  void drop_if_bare(NodeNumber node);

  // 0 where the slot does not hold it.
  Member member(NodeNumber node, std::uint32_t slot) const {
    return sets_.find(nodes_[node].members, slot);
  }
  // The slot has the block in these tiers as well. Returns what it was before (0: not a member),
  // or nothing when there is no room. parent: the block before it, kNoNode for a first block.
  std::optional<Member> hold(NodeNumber node, NodeNumber parent, std::uint32_t slot,
                             std::uint32_t tiers, Tally& tally);
  // The slot has it in these tiers no more.
  void release(NodeNumber node, std::uint32_t slot, std::uint32_t tiers, Tally& tally);

  bool is_first(NodeNumber node) const { return nodes_[node].prev == (kNoNode | Node::kIsParent); }
  template <class Visitor>
  void for_children(NodeNumber node, Visitor visitor) const {
    for (NodeNumber child = nodes_[node].first_child; child != kNoNode;
         child = nodes_[child].next) {
      visitor(child);
    }
  }

  void match(std::span<const SequenceHash> prompt, const Slots& slots,
             std::vector<Match>& matches) const;

  // Any thread.
  std::size_t held() const { return held_.load(std::memory_order_relaxed); }
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  void publish_bytes();

 private:
  friend class Matcher;

  void spread(NodeNumber node, std::uint32_t slot, std::uint32_t reach, Tally& tally);

  mutable FairLock lock_;
  BlockCount& count_;
  NodeSlab nodes_;
  BlockTable table_;
  MemberSets sets_;
  struct Front {
    NodeNumber node;
    std::uint32_t reach;
  };
  std::vector<Front> fronts_;  // spread()'s, kept for the next time
  std::atomic<std::size_t> held_{0};
  std::atomic<std::size_t> bytes_{0};
};

}  // namespace baton::kvindex
