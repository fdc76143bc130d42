// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvindex/shard.h"

namespace baton::kvindex {

Shard::Shard(PageArena& arena, BlockCount& count)
    : count_(count), nodes_(arena), table_(arena, nodes_), sets_(arena) {
  publish_bytes();
}

void Shard::prefetch_around(NodeNumber node) const {
  const Node& block = nodes_[node];
  table_.prefetch_line(block.key);
  sets_.prefetch(block.members);
  const NodeNumber neighbour = block.prev & ~Node::kIsParent;
  if (neighbour != kNoNode) __builtin_prefetch(&nodes_[neighbour]);
}

NodeNumber Shard::make(SequenceHash key, NodeNumber parent) {
  if (!count_.take()) return kNoNode;
  const NodeNumber made = nodes_.take();
  if (made != kNoNode) {
    Node& block = nodes_[made];
    block = {.key = key,
             .first_child = kNoNode,
             .next = kNoNode,
             .prev = parent | Node::kIsParent,
             .members = 0};
    if (table_.insert(made)) {
      if (parent == kNoNode) return made;
      block.next = nodes_[parent].first_child;
      nodes_[parent].first_child = made;
      if (block.next != kNoNode) nodes_[block.next].prev = made;
      return made;
    }
    nodes_.give(made);
  }
  count_.known.fetch_sub(1, std::memory_order_relaxed);
  return kNoNode;
}

void Shard::drop_if_bare(NodeNumber node) {
  while (node != kNoNode) {
    Node& block = nodes_[node];
    if (block.members != 0 || block.first_child != kNoNode) return;
    NodeNumber parent = kNoNode;
    if ((block.prev & Node::kIsParent) == 0) {
      nodes_[block.prev].next = block.next;
    } else {
      parent = block.prev & ~Node::kIsParent;
      if (parent != kNoNode) nodes_[parent].first_child = block.next;
    }
    if (block.next != kNoNode) nodes_[block.next].prev = block.prev;
    table_.erase(node);
    nodes_.give(node);
    count_.known.fetch_sub(1, std::memory_order_relaxed);
    node = parent;
  }
}

std::optional<Member> Shard::hold(NodeNumber node, NodeNumber parent, std::uint32_t slot,
                                  std::uint32_t tiers, Tally& tally) {
  Node& block = nodes_[node];
  const Member old = sets_.find(block.members, slot);
  if (old != 0) {
    const Member now = with_tiers(old, tiers_of(old) | tiers);
    if (now == old) return old;
    sets_.replace(block.members, now);
    tally.count_tiers(tiers_of(old), tiers_of(now));
    if (reach_of(now) != reach_of(old) && (now & kMayHaveChildren) != 0) {
      spread(node, slot, reach_of(now), tally);
    }
    return old;
  }

  std::uint32_t before = 0;
  if (parent != kNoNode) {
    const Member held = sets_.find(nodes_[parent].members, slot);
    before = held == 0 ? kNoReach : reach_of(held);
    if (held != 0 && (held & kMayHaveChildren) == 0) {
      sets_.replace(nodes_[parent].members, held | kMayHaveChildren);
    }
  }
  const bool first = block.members == 0;
  Member now = make_member(slot, tiers, before);
  // Blocks that follow may have waited for this one.
  const bool awaited = tally.cut_off > 0 && block.first_child != kNoNode;
  if (awaited) now |= kMayHaveChildren;
  if (!sets_.add(block.members, now)) return std::nullopt;
  if (first) Tally::add(held_, 1);
  if (before == kNoReach) ++tally.cut_off;
  tally.count_tiers(0, tiers);
  Tally::add(tally.memberships, 1);
  if (awaited) spread(node, slot, reach_of(now), tally);
  return 0;
}

void Shard::release(NodeNumber node, std::uint32_t slot, std::uint32_t tiers, Tally& tally) {
  Node& block = nodes_[node];
  const Member old = sets_.find(block.members, slot);
  const std::uint32_t left = tiers_of(old) & ~tiers;
  tally.count_tiers(tiers_of(old), left);
  if (left != 0) {
    const Member now = with_tiers(old, left);
    sets_.replace(block.members, now);
    if (reach_of(now) != reach_of(old) && (now & kMayHaveChildren) != 0) {
      spread(node, slot, reach_of(now), tally);
    }
    return;
  }
  sets_.remove(block.members, slot);
  Tally::add(tally.memberships, static_cast<std::size_t>(-1));
  if (reach_before(old) == kNoReach) --tally.cut_off;
  if (block.members == 0) Tally::add(held_, static_cast<std::size_t>(-1));
  if ((old & kMayHaveChildren) != 0 && reach_of(old) != kNoReach) {
    spread(node, slot, kNoReach, tally);
  }
  drop_if_bare(node);
}

// The slot must reach so far now for all up to `node`: tells the blocks that follow.
void Shard::spread(NodeNumber node, std::uint32_t slot, std::uint32_t reach, Tally& tally) {
  if (nodes_[node].first_child == kNoNode) return;
  fronts_.assign(1, {.node = node, .reach = reach});
  while (!fronts_.empty()) {
    const Front front = fronts_.back();
    fronts_.pop_back();
    for (NodeNumber child = nodes_[front.node].first_child; child != kNoNode;
         child = nodes_[child].next) {
      Node& block = nodes_[child];
      const Member old = sets_.find(block.members, slot);
      if (old == 0 || reach_before(old) == front.reach) continue;
      const Member now = with_reach_before(old, front.reach);
      sets_.replace(block.members, now);
      if (reach_before(old) == kNoReach) --tally.cut_off;
      if (front.reach == kNoReach) ++tally.cut_off;
      if (reach_of(now) != reach_of(old) && (now & kMayHaveChildren) != 0) {
        fronts_.push_back({.node = child, .reach = reach_of(now)});
      }
    }
  }
}

void Shard::publish_bytes() {
  bytes_.store(sizeof(*this) + table_.bytes() + sets_.bytes(), std::memory_order_relaxed);
}

}  // namespace baton::kvindex
