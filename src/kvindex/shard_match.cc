// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvindex/shard.h"

#include <algorithm>
#include <array>
#include <ranges>

namespace baton::kvindex {
namespace {

// From so few blocks on, the way down from one to the next is shorter than halving.
constexpr std::uint32_t kWalk = 32;
// How many parts a long prompt is cut into at first.
constexpr std::uint32_t kParts = 32;

// Where a slot's match is, for the length of one call; kept by each thread, so that a call needs
// no memory of its own.
class Places {
 public:
  void begin() {
    if (++round_ == 0) {
      std::ranges::fill(places_, Place{});
      round_ = 1;
    }
  }
  // The slot's place if it has one, else `fresh`, which is its place from now on.
  std::uint32_t find_or_set(std::uint32_t slot, std::uint32_t fresh) {
    if (slot >= places_.size()) places_.resize(slot + slot / 2 + 64);
    Place& place = places_[slot];
    if (place.round != round_) place = {.round = round_, .index = fresh};
    return place.index;
  }

 private:
  struct Place {
    std::uint32_t round = 0;
    std::uint32_t index = 0;
  };
  std::vector<Place> places_;
  std::uint32_t round_ = 0;
};

}  // namespace

// Role. One match: finds the depths where holders drop out, and reads the holders only there.
class Matcher {
 public:
  Matcher(const Shard& shard, std::span<const SequenceHash> prompt, const Slots& slots,
          std::vector<Match>& matches)
      : shard_(shard), prompt_(prompt), slots_(slots), matches_(matches) {}

  void run();

 private:
  struct Step {
    std::uint32_t depth = 0;
    NodeNumber node = kNoNode;
    std::uint32_t score = 0;
  };
  struct Scratch {
    std::vector<Step> runs;
    Places places;
  };

  Step step_to(std::uint32_t depth, NodeNumber node) const {
    return {.depth = depth,
            .node = node,
            .score = node == kNoNode ? 0 : shard_.sets_.score(shard_.nodes_[node].members)};
  }
  Step look(std::uint32_t depth) const { return step_to(depth, shard_.find(prompt_[depth])); }
  NodeNumber child_of(NodeNumber node, std::uint32_t depth) const;
  Step after(const Step& step) const {
    return step_to(step.depth + 1, child_of(step.node, step.depth + 1));
  }
  void walk(const Step& low, const Step& high);
  void refine(const Step& low, const Step& high);
  void give(Member member, std::uint32_t length);
  void assign(const MemberSets::View& run, const MemberSets::View& deeper, std::uint32_t length);
  // Whether all members have all of the prefix in the nearest tier.
  static bool all_near(const MemberSets::View& set) {
    return set.score == kNoReach * set.members.size();
  }

  static Scratch& scratch() {
    static thread_local Scratch scratch;
    return scratch;
  }

  const Shard& shard_;
  std::span<const SequenceHash> prompt_;
  const Slots& slots_;
  std::vector<Match>& matches_;
};

// The block at `depth`, which follows `node`: often its first child.
NodeNumber Matcher::child_of(NodeNumber node, std::uint32_t depth) const {
  const NodeNumber child = shard_.nodes_[node].first_child;
  if (child != kNoNode && shard_.nodes_[child].key == prompt_[depth]) return child;
  return shard_.find(prompt_[depth]);
}

// Notes the last block of every stretch of equal holders from `low` up to, without, `high`.
void Matcher::refine(const Step& low, const Step& high) {
  if (low.score == high.score) return;
  if (high.depth - low.depth > kWalk) {
    const Step middle = look(low.depth + (high.depth - low.depth) / 2);
    refine(low, middle);
    refine(middle, high);
    return;
  }
  walk(low, high);
}

void Matcher::walk(const Step& low, const Step& high) {
  // All blocks before the first score, so that their sets come into the cache together.
  std::array<NodeNumber, kWalk> nodes{};
  std::uint32_t count = 0;
  NodeNumber node = low.node;
  for (std::uint32_t depth = low.depth + 1; depth < high.depth && node != kNoNode; ++depth) {
    node = child_of(node, depth);
    if (node != kNoNode) shard_.sets_.prefetch(shard_.nodes_[node].members);
    nodes[count++] = node;
  }
  Step at = low;
  for (std::uint32_t i = 0; i <= count && at.score > 0; ++i) {
    const Step next = i < count ? step_to(at.depth + 1, nodes[i]) : high;
    if (next.score != at.score) scratch().runs.push_back(at);
    at = next;
  }
}

void Matcher::give(Member member, std::uint32_t length) {
  const std::uint32_t reach = reach_of(member);
  if (reach == kNoReach) return;
  const auto fresh = static_cast<std::uint32_t>(matches_.size());
  const std::uint32_t index = scratch().places.find_or_set(slot_of(member), fresh);
  if (index == fresh) matches_.push_back({.holder = slots_.holder(slot_of(member))});
  for (std::size_t tier = reach; tier < kTiers; ++tier) {
    std::uint32_t& blocks = matches_[index].blocks[tier];
    if (blocks == 0) blocks = length;
  }
}

// Gives their lengths to the holders of a run that have not the same in the next deeper one.
void Matcher::assign(const MemberSets::View& run, const MemberSets::View& deeper,
                     std::uint32_t length) {
  const std::size_t gone = run.members.size() - std::min(deeper.members.size(), run.members.size());
  if (all_near(run) && all_near(deeper) && gone < run.members.size() / 8) {
    // The deeper ones are among these, so each that is not stands where the two begin to differ.
    std::size_t from = 0;
    for (std::size_t passed = 0; passed < gone; ++passed) {
      const auto same = [&](std::size_t at) {
        return at - passed < deeper.members.size() &&
               slot_of(run.members[at]) == slot_of(deeper.members[at - passed]);
      };
      const auto places = std::views::iota(from, run.members.size());
      from = *std::ranges::partition_point(places, same);
      give(run.members[from++], length);
    }
    return;
  }
  std::size_t at = 0;
  for (const Member member : run.members) {
    while (at < deeper.members.size() && slot_of(deeper.members[at]) < slot_of(member)) ++at;
    if (at < deeper.members.size() && (deeper.members[at] ^ member) >> 2 == 0) continue;
    give(member, length);
  }
}

void Matcher::run() {
  auto& runs = scratch().runs;
  runs.clear();
  Step low = look(0);
  const auto last = static_cast<std::uint32_t>(prompt_.size() - 1);
  const std::uint32_t stride = std::max(1U, (last + kParts - 1) / kParts);
  if (last > kWalk && low.score > 0) {
    for (std::uint32_t depth = stride; depth <= last; depth += stride) {
      shard_.prefetch_line(prompt_[depth]);
    }
    for (std::uint32_t depth = stride; depth <= last; depth += stride) {
      shard_.prefetch_found(prompt_[depth]);
    }
  }
  if (last <= kWalk) {
    while (low.depth < last && low.score > 0) {
      const Step next = after(low);
      if (next.score != low.score) runs.push_back(low);
      low = next;
    }
  } else {
    while (low.depth < last && low.score > 0) {
      const Step high = look(std::min(last, low.depth + stride));
      refine(low, high);
      low = high;
    }
  }
  if (low.score > 0) runs.push_back(low);

  scratch().places.begin();
  MemberSets::View deeper;
  for (std::size_t i = runs.size(); i-- > 0;) {
    const auto members = shard_.sets_.view(shard_.nodes_[runs[i].node].members);
    assign(members, deeper, runs[i].depth + 1);
    deeper = members;
  }
}

void Shard::match(std::span<const SequenceHash> prompt, const Slots& slots,
                  std::vector<Match>& matches) const {
  Matcher(*this, prompt, slots, matches).run();
}

}  // namespace baton::kvindex
