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

// Where a block lies, the nearest first.
enum class Tier : std::uint8_t { Device, Host, Disk, External };
inline constexpr std::size_t kTiers = 4;

// What an engine calls a block; means nothing to anybody else.
using EngineHash = std::uint64_t;

// Who holds blocks: each rank of a worker has a cache of its own.
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

// What became of the blocks of a store or removal.
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

// How many blocks of a prompt, counted from its beginning, a holder has in a tier or in nearer
// ones; so none is smaller than the one before it.
struct Match {
  Holder holder;
  std::array<std::uint32_t, kTiers> blocks{};
  bool operator==(const Match&) const = default;
};

// Of the most blocks: how many holders each may have, on average, before memberships are the limit.
inline constexpr std::size_t kMembershipsPerBlock = 8;

// Role. Who holds which prefix of a prompt.
// Confinement. Any thread may match(), visit() and ask for figures. What changes a slot is called by
//   one thread at a time; different slots by different threads at once. Between join() and leave()
//   only.
// Lifetime. Outlives its slots' writers.
// Invariants. A match sees all that was applied before it began, and nothing that never was. Only
//   contiguous prefixes count: a block whose predecessor has gone is kept, and counts again when
//   the predecessor is back. Memory follows what is held, and is given back.
class Index {
 public:
  struct Limits {
    // Different ones; more are not taken up. Those count as well that nobody holds but that lead
    // to one that somebody does.
    std::size_t blocks = 16'000'000;
    // Pairs of a block and a holder; what an engine calls one of its blocks beside its first name
    // for it counts like one. More are not taken up.
    std::size_t memberships = kMembershipsPerBlock * blocks;
  };
  explicit Index(Limits limits);
  ~Index();

  Slot join(Holder holder);
  void leave(Slot slot);

  // The blocks follow each other, and the first one `parent`; without one it begins a prompt.
  Applied store(Slot slot, std::optional<EngineHash> parent, std::span<const NewBlock> blocks,
                Tier tier);
  // Blocks known already, which are in `tier` now as well: for engines that do not say again what
  // is in them.
  Applied copy(Slot slot, std::span<const EngineHash> blocks, Tier tier);
  Applied remove(Slot slot, std::span<const EngineHash> blocks, Tier tier);
  void clear(Slot slot);

  // Into `matches`, in no order: whoever has at least the first block, in any tier.
  void match(std::span<const SequenceHash> prompt, std::vector<Match>& matches) const;

  // Of whoever has the slot, also if it left meanwhile and another joined; nothing where it has not
  // even the first block.
  std::optional<Match> match_one(Slot slot, std::span<const SequenceHash> prompt) const;

  struct Holding {
    std::array<std::size_t, kTiers> blocks{};
    std::size_t bytes = 0;  // of what is remembered for this slot alone
  };
  Holding holding(Slot slot) const;
  struct Size {
    std::size_t blocks = 0;       // different ones that somebody holds
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
  // What a slot held at one moment; to be put in order when there is time for it.
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
  // Whoever writes the slot waits meanwhile.
  Listing list(Slot slot) const;
  void visit(Slot slot, const std::function<void(const Held&)>& visitor) const;

  // As store(), of what visit() gave. A block whose parent has gone cannot come back this way: where
  // it belongs is known no more.
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
