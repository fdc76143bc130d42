// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "scheduling/policy/block_weight.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace baton::scheduling {

// Full blocks of a prompt, as chained hashes: each implies all before it.
using BlockChain = std::shared_ptr<const std::vector<std::uint64_t>>;

// Role. Tracks which blocks of active prompts each rank holds, in a tree of runs of blocks that the
//   same prompts share, so that no operation costs as much as a prompt is long.
// Confinement. None of its own; LoadLedger's lock.
// Lifetime. Outlives the ends it gave out.
// Invariants. A run has an end of a prompt in it or at least two runs after it: there are never
//   more than twice as many runs as prompts. A run's chain is no longer than that of a prompt that
//   still goes through it, so chains of prompts that have ended are freed. A block that one prompt
//   holds on a rank counts with that prompt's weight; one that several hold counts as a whole
//   block.
class ActiveBlocks {
 public:
  struct Run;
  using Slot = std::uint32_t;  // of a rank
  struct Added {
    Run* end = nullptr;
    BlockWeight change = 0;  // of the rank's blocks
  };

  ActiveBlocks();
  ~ActiveBlocks();
  ActiveBlocks(const ActiveBlocks&) = delete;
  ActiveBlocks& operator=(const ActiveBlocks&) = delete;

  // A prompt whose blocks each count as a whole block. Requires: chain is not empty.
  Added add(Slot slot, BlockChain chain);
  // Both return the change. Requires: `end` came from add for the same slot, and each of the
  // prompt's blocks has the weight `weight`.
  BlockWeight remove(Slot slot, Run* end, BlockWeight weight);
  BlockWeight reweigh(Slot slot, Run* end, BlockWeight weight, BlockWeight next);

  // Calls visit(slot, blocks) for each rank that holds the beginning of `chain`.
  template <class Visit>
  void visit_shared(std::span<const std::uint64_t> chain, Visit visit) const;

  // Over all prompts; a block on several ranks counts once.
  std::size_t blocks() const { return blocks_; }
  std::size_t runs() const { return runs_.size(); }

 private:
  struct Holder {
    Slot slot = 0;
    std::uint32_t prompts = 0;
    BlockWeight weight = 0;  // sum over them
    BlockWeight per_block() const { return prompts == 1 ? weight : kWholeBlock; }
  };
  // The key of a run: the run before it, and its first block.
  struct Place {
    const Run* parent = nullptr;
    std::uint64_t first = 0;
    bool operator==(const Place&) const = default;
  };
  struct PlaceHash {
    std::size_t operator()(const Place& place) const;
  };
  using Runs = std::unordered_map<Place, std::unique_ptr<Run>, PlaceHash>;
  struct Match {
    const Run* run = nullptr;  // the last one with a block in common; null: none
    std::size_t blocks = 0;
  };

  Run* find(const Run& parent, std::uint64_t first) const;
  Match match(std::span<const std::uint64_t> chain) const;
  Run& insert(std::unique_ptr<Run> run);
  Run& split(Run& lower, std::size_t at);
  void join(Run& upper);
  std::unique_ptr<Run> take(Run& run);
  void replace_chain(Run* run, const BlockChain& gone);
  static BlockWeight enter(Run& run, Slot slot);
  static BlockWeight leave(Run& run, Slot slot, BlockWeight weight);

  std::unique_ptr<Run> root_;
  Runs runs_;
  std::size_t blocks_ = 0;
};

// Blocks that follow each other in all prompts that go through them.
struct ActiveBlocks::Run {
  std::size_t length() const { return end - begin; }
  std::uint64_t first() const { return (*chain)[begin]; }
  Place place() const { return {parent, first()}; }
  std::vector<Holder>::iterator find(Slot slot);

  Run* parent = nullptr;
  Run* child = nullptr;  // one of those after it; they are linked
  Run* previous = nullptr;
  Run* next = nullptr;
  BlockChain chain;
  std::size_t begin = 0;  // within the chain
  std::size_t end = 0;
  std::size_t ends = 0;         // prompts whose last block is this run's
  std::vector<Holder> holders;  // by slot
};

template <class Visit>
void ActiveBlocks::visit_shared(std::span<const std::uint64_t> chain, Visit visit) const {
  const auto [last, blocks] = match(chain);
  if (last == nullptr) return;
  for (const Holder& holder : last->holders) visit(holder.slot, blocks);
  // Upwards: a rank in a run is in all before it, so only those not seen below are new.
  for (const Run* run = last; run->parent != root_.get(); run = run->parent) {
    const std::vector<Holder>& before = run->parent->holders;
    if (before.size() == run->holders.size()) continue;
    auto seen = run->holders.begin();
    for (const Holder& holder : before) {
      if (seen != run->holders.end() && seen->slot == holder.slot) {
        ++seen;
      } else {
        visit(holder.slot, run->begin);
      }
    }
  }
}

}  // namespace baton::scheduling
