// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/active_blocks.h"

#include <algorithm>
#include <utility>

namespace baton::scheduling {
namespace {

// The number of equal hashes from the start. If two chains' hashes are equal at some depth, all
// before are too: a binary search finds where they part.
std::size_t common(std::span<const std::uint64_t> one, std::span<const std::uint64_t> other) {
  std::size_t equal = 0;
  std::size_t unequal = std::min(one.size(), other.size()) + 1;
  // Mostly they part at once or not at all.
  if (unequal > 1 && one[unequal - 2] == other[unequal - 2]) return unequal - 1;
  while (unequal - equal > 1) {
    const std::size_t middle = equal + (unequal - equal) / 2;
    (one[middle - 1] == other[middle - 1] ? equal : unequal) = middle;
  }
  return equal;
}

}  // namespace

std::size_t ActiveBlocks::PlaceHash::operator()(const Place& place) const {
  const auto parent = reinterpret_cast<std::uintptr_t>(place.parent);
  const std::uint64_t mixed = (place.first ^ parent) * 0x9E37'79B9'7F4A'7C15ULL;
  return static_cast<std::size_t>(mixed ^ mixed >> 32);
}

std::vector<ActiveBlocks::Holder>::iterator ActiveBlocks::Run::find(Slot slot) {
  return std::ranges::lower_bound(holders, slot, {}, &Holder::slot);
}

ActiveBlocks::ActiveBlocks() : root_(std::make_unique<Run>()) {}
ActiveBlocks::~ActiveBlocks() = default;

ActiveBlocks::Added ActiveBlocks::add(Slot slot, BlockChain chain) {
  const std::span<const std::uint64_t> all(*chain);
  Added added;
  Run* run = root_.get();
  std::size_t depth = 0;
  while (depth < all.size()) {
    Run* next = find(*run, all[depth]);
    if (next == nullptr) {
      auto rest = std::make_unique<Run>();
      rest->parent = run;
      rest->chain = chain;
      rest->begin = depth;
      rest->end = all.size();
      next = &insert(std::move(rest));
      blocks_ += next->length();
    } else {
      const std::span<const std::uint64_t> run_blocks(*next->chain);
      const std::size_t equal =
          common(run_blocks.subspan(depth, next->length()), all.subspan(depth));
      if (equal < next->length()) next = &split(*next, depth + equal);
    }
    added.change += enter(*next, slot);
    depth = next->end;
    run = next;
  }
  ++run->ends;
  if (run->chain->size() > run->end) run->chain = std::move(chain);
  added.end = run;
  return added;
}

BlockWeight ActiveBlocks::remove(Slot slot, Run* end, BlockWeight weight) {
  BlockWeight change = 0;
  for (Run* run = end; run != root_.get(); run = run->parent) change += leave(*run, slot, weight);
  --end->ends;
  Run* last = end;  // the last one that stays
  if (end->holders.empty()) {
    last = end->parent;
    const BlockChain gone = end->chain;
    blocks_ -= end->length();
    take(*end);
    replace_chain(last, gone);
  }
  if (last != root_.get() && last->ends == 0 && last->child->next == nullptr) join(*last);
  return change;
}

BlockWeight ActiveBlocks::reweigh(Slot slot, Run* end, BlockWeight weight, BlockWeight next) {
  BlockWeight change = 0;
  for (Run* run = end; run != root_.get(); run = run->parent) {
    Holder& holder = *run->find(slot);
    const BlockWeight before = holder.per_block();
    holder.weight += next - weight;
    change += static_cast<BlockWeight>(run->length()) * (holder.per_block() - before);
  }
  return change;
}

ActiveBlocks::Run* ActiveBlocks::find(const Run& parent, std::uint64_t first) const {
  const auto found = runs_.find(Place{&parent, first});
  return found == runs_.end() ? nullptr : found->second.get();
}

ActiveBlocks::Match ActiveBlocks::match(std::span<const std::uint64_t> chain) const {
  Match result;
  const Run* run = root_.get();
  while (result.blocks < chain.size()) {
    run = find(*run, chain[result.blocks]);
    if (run == nullptr) break;
    const std::span<const std::uint64_t> run_blocks(*run->chain);
    result.run = run;
    result.blocks +=
        common(run_blocks.subspan(run->begin, run->length()), chain.subspan(result.blocks));
    if (result.blocks < run->end) break;
  }
  return result;
}

ActiveBlocks::Run& ActiveBlocks::insert(std::unique_ptr<Run> run) {
  Run& placed = *run;
  placed.previous = nullptr;
  placed.next = placed.parent->child;
  if (placed.next != nullptr) placed.next->previous = &placed;
  placed.parent->child = &placed;
  runs_.emplace(placed.place(), std::move(run));
  return placed;
}

// Returns the upper part. The lower one keeps its identity: prompts refer to it as their end.
ActiveBlocks::Run& ActiveBlocks::split(Run& lower, std::size_t at) {
  auto upper = std::make_unique<Run>();
  upper->parent = lower.parent;
  upper->chain = lower.chain;
  upper->begin = lower.begin;
  upper->end = at;
  upper->holders = lower.holders;
  auto owned = take(lower);
  Run& placed = insert(std::move(upper));
  lower.parent = &placed;
  lower.begin = at;
  insert(std::move(owned));
  return placed;
}

// The opposite, for a run that no prompt ends in and that has one run after it.
void ActiveBlocks::join(Run& upper) {
  Run& lower = *upper.child;
  auto owned = take(lower);
  const auto done = take(upper);
  lower.parent = upper.parent;
  lower.begin = upper.begin;
  insert(std::move(owned));
  if (lower.chain != upper.chain) replace_chain(lower.parent, upper.chain);
}

// If `run` or one before it takes its blocks from the chain of a run that is gone, it takes them
// from a later run instead.
void ActiveBlocks::replace_chain(Run* run, const BlockChain& gone) {
  for (; run != root_.get(); run = run->parent) {
    if (run->chain == gone) run->chain = run->child->chain;
  }
}

std::unique_ptr<ActiveBlocks::Run> ActiveBlocks::take(Run& run) {
  (run.previous != nullptr ? run.previous->next : run.parent->child) = run.next;
  if (run.next != nullptr) run.next->previous = run.previous;
  const auto found = runs_.find(run.place());
  auto owned = std::move(found->second);
  runs_.erase(found);
  return owned;
}

// The change of the rank's blocks by another prompt.
BlockWeight ActiveBlocks::enter(Run& run, Slot slot) {
  auto holder = run.find(slot);
  const auto length = static_cast<BlockWeight>(run.length());
  if (holder == run.holders.end() || holder->slot != slot) {
    run.holders.insert(holder, Holder{slot, 1, kWholeBlock});
    return length * kWholeBlock;
  }
  const BlockWeight before = holder->per_block();
  ++holder->prompts;
  holder->weight += kWholeBlock;
  return length * (holder->per_block() - before);
}

BlockWeight ActiveBlocks::leave(Run& run, Slot slot, BlockWeight weight) {
  const auto holder = run.find(slot);
  const auto length = static_cast<BlockWeight>(run.length());
  const BlockWeight before = holder->per_block();
  --holder->prompts;
  holder->weight -= weight;
  if (holder->prompts > 0) return length * (holder->per_block() - before);
  run.holders.erase(holder);
  if (run.holders.size() < run.holders.capacity() / 4) run.holders.shrink_to_fit();
  return -length * before;
}

}  // namespace baton::scheduling
