// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/index/block_hash.h"
#include "model/worker.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace baton::kvcache {

// The storage of a block, the nearest first.
enum class Tier : std::uint8_t { Device, Host, Disk, External };
inline constexpr std::size_t kTiers = 4;

// An engine's name of a block; has no meaning outside of that engine.
using EngineHash = std::uint64_t;

// A holder of blocks: each rank of a worker has a cache of its own.
struct Holder {
  model::WorkerId worker;
  std::uint32_t rank = 0;
  auto operator<=>(const Holder&) const = default;
};

// A holder's place in the index, from join() to leave().
enum class Slot : std::uint32_t {};

struct NewBlock {
  EngineHash engine;
  BlockHash block;
};

// Results for the blocks of a store or removal.
struct Applied {
  std::uint32_t done = 0;   // the holder has them now (or has not, any more)
  std::uint32_t known = 0;  // it was so already
  // They follow a block that the holder does not have, or are to be copied and it does not have
  // them: left out.
  std::uint32_t unknown_parent = 0;
  // Beyond the most blocks or memberships, or after one that is: left out.
  std::uint32_t no_room = 0;
  bool operator==(const Applied&) const = default;
};

// Blocks of a prompt, counted from its beginning, that a holder has in a tier or in nearer ones; so
// none is smaller than the one before it.
struct Match {
  Holder holder;
  std::array<std::uint32_t, kTiers> blocks{};
  bool operator==(const Match&) const = default;
};

// Holders that each of the most blocks may have, on average, before memberships are the limit.
inline constexpr std::size_t kMembershipsPerBlock = 8;

// Role. Maps prefixes of prompts to their holders.
// Confinement. Any thread may match(), visit() and ask for figures. Changes of one slot come from
//   one thread at a time; of different slots, from different threads at once. Between join() and
//   leave() only.
// Lifetime. Outlives its slots' writers.
// Invariants. A match sees all that was applied before it began, and nothing that never was. Only
//   contiguous prefixes count: a block whose predecessor has gone is kept, and counts again when
//   the predecessor is back. Memory follows the held blocks, and is given back.
class Index {
 public:
  struct Limits {
    // Distinct blocks; more are not taken up. A block that is not held but leads to a held one
    // counts as well.
    std::size_t blocks = 16'000'000;
    // Pairs of a block and a holder; an engine's further names of a block count like one. More are
    // not taken up.
    std::size_t memberships = kMembershipsPerBlock * blocks;
  };
  explicit Index(Limits limits);
  ~Index();

  Slot join(Holder holder);
  void leave(Slot slot);

  // The blocks follow each other, and the first one `parent`; without one it begins a prompt.
  Applied store(Slot slot, std::optional<EngineHash> parent, std::span<const NewBlock> blocks,
                Tier tier);
  // Known blocks, which are now in `tier` as well: for engines that do not repeat their contents.
  Applied copy(Slot slot, std::span<const EngineHash> blocks, Tier tier);
  Applied remove(Slot slot, std::span<const EngineHash> blocks, Tier tier);
  void clear(Slot slot);

  // Writes to `matches`, unordered: all holders of at least the first block, in any tier.
  void match(std::span<const SequenceHash> prompt, std::vector<Match>& matches) const;

  // The match of the slot's current holder, also if another one left meanwhile; nothing if it does
  // not hold even the first block.
  std::optional<Match> match_one(Slot slot, std::span<const SequenceHash> prompt) const;

  struct Holding {
    std::array<std::size_t, kTiers> blocks{};
    std::size_t bytes = 0;  // of memory for this slot alone
  };
  Holding holding(Slot slot) const;
  struct Size {
    std::size_t blocks = 0;       // distinct held ones
    std::size_t memberships = 0;  // pairs of block and holder
    std::size_t bytes = 0;        // of all of it
  };
  Size size() const;
  Limits limits() const;

  // Everything a slot holds, each block after its predecessor where the slot has that.
  struct Held {
    EngineHash engine = 0;
    SequenceHash sequence = 0;
    std::optional<EngineHash> parent =
        {};                  // nothing for a first block, or one whose parent has gone
    bool first = false;      // begins a prompt
    std::uint8_t tiers = 0;  // bit t: in tier t
    bool operator==(const Held&) const = default;
  };
  // A slot's blocks at one moment; sorted later.
  class Listing {
   public:
    void visit(const std::function<void(const Held&)>& visitor) const;

   private:
    friend class Index;
    struct Block {
      Held held;  // without its parent
      std::uint32_t place;
      std::uint32_t before = 0;  // its parent's place
    };
    std::vector<Block> blocks_;  // by place
  };
  // The slot's writer waits meanwhile.
  Listing list(Slot slot) const;
  void visit(Slot slot, const std::function<void(const Held&)>& visitor) const;

  // Like store(), for the output of visit(). A block whose parent has gone cannot come back this
  // way: its place is no longer known.
  struct Restored {
    EngineHash engine;
    SequenceHash sequence;
    std::uint8_t tiers;
  };
  Applied restore(Slot slot, std::optional<EngineHash> parent, std::span<const Restored> blocks);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace baton::kvcache
