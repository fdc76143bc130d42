// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvindex/shard.h"

#include <algorithm>

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
  Step after(const Step& step) const;
  void refine(const Step& low, const Step& high);
  void assign(const Step& run, std::span<const Member> deeper);

  static Scratch& scratch() {
    static thread_local Scratch scratch;
    return scratch;
  }

  const Shard& shard_;
  std::span<const SequenceHash> prompt_;
  const Slots& slots_;
  std::vector<Match>& matches_;
};

Matcher::Step Matcher::after(const Step& step) const {
  const std::uint32_t depth = step.depth + 1;
  const NodeNumber child = shard_.nodes_[step.node].first_child;
  if (child != kNoNode && shard_.nodes_[child].key == prompt_[depth]) return step_to(depth, child);
  return look(depth);
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
  Step at = low;
  while (at.depth < high.depth && at.score > 0) {
    const Step next = at.depth + 1 == high.depth ? high : after(at);
    if (next.score != at.score) scratch().runs.push_back(at);
    at = next;
  }
}

// Gives their lengths to the holders of a run that have not the same in the next deeper one.
void Matcher::assign(const Step& run, std::span<const Member> deeper) {
  const auto members = shard_.sets_.view(shard_.nodes_[run.node].members).members;
  std::size_t at = 0;
  for (const Member member : members) {
    while (at < deeper.size() && slot_of(deeper[at]) < slot_of(member)) ++at;
    if (at < deeper.size() && (deeper[at] ^ member) >> 2 == 0) continue;
    const std::uint32_t reach = reach_of(member);
    if (reach == kNoReach) continue;
    const auto fresh = static_cast<std::uint32_t>(matches_.size());
    const std::uint32_t index = scratch().places.find_or_set(slot_of(member), fresh);
    if (index == fresh) matches_.push_back({.holder = slots_.holder(slot_of(member))});
    for (std::size_t tier = reach; tier < kTiers; ++tier) {
      std::uint32_t& blocks = matches_[index].blocks[tier];
      if (blocks == 0) blocks = run.depth + 1;
    }
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
  std::span<const Member> deeper;
  for (std::size_t i = runs.size(); i-- > 0;) {
    assign(runs[i], deeper);
    deeper = shard_.sets_.view(shard_.nodes_[runs[i].node].members).members;
  }
}

void Shard::match(std::span<const SequenceHash> prompt, const Slots& slots,
                  std::vector<Match>& matches) const {
  Matcher(*this, prompt, slots, matches).run();
}

}  // namespace baton::kvindex
