// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/block_writer.h"

#include "kvcache/index/snapshot.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace baton::kvcache {
namespace {

// Larger than any engine has them.
constexpr std::uint64_t kLargestBlock = 65'536;
// Up to here comparing each with each is the fastest way.
constexpr std::size_t kFewHashes = 16;
constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;

// Waiting removals of a feed, of which there may be thousands.
constexpr std::size_t kMostWaiting = 256;

// Buffers used only while an event is written belong to the thread, not to each feed.
struct Scratch {
  BlockNamespace name_space;
  std::vector<NewBlock> blocks;
  std::vector<EngineHash> seen;
};
Scratch& scratch() {
  thread_local Scratch scratch;
  return scratch;
}

// Requires: a size that fits.
BlockShape shape_of(const Event& event) {
  return {.size = static_cast<std::uint32_t>(event.block_size), .bigram = event.bigram};
}

// Whether a block would follow itself.
bool repeats(const Event& event, std::optional<EngineHash> parent, std::vector<EngineHash>& seen) {
  const auto& hashes = event.hashes;
  if (parent && std::ranges::find(hashes, *parent) != hashes.end()) return true;
  if (hashes.size() <= kFewHashes) {
    for (auto it = hashes.begin(); it != hashes.end(); ++it) {
      if (std::find(it + 1, hashes.end(), *it) != hashes.end()) return true;
    }
    return false;
  }
  // A table of hashes at most half full, 0 being a free place.
  seen.assign(std::bit_ceil(2 * hashes.size()), 0);
  const std::size_t last = seen.size() - 1;
  bool seen_zero = false;
  for (const EngineHash hash : hashes) {
    if (hash == 0) {
      if (seen_zero) return true;
      seen_zero = true;
      continue;
    }
    std::size_t at = (hash * kSpread) >> 32U & last;
    for (; seen[at] != 0; at = (at + 1) & last) {
      if (seen[at] == hash) return true;
    }
    seen[at] = hash;
  }
  return false;
}

// The first `count` blocks of an event.
void hash_blocks(const Event& event, std::size_t count, std::uint64_t seed, Scratch& scratch) {
  scratch.blocks.resize(count);
  const std::size_t size = event.block_size;
  const std::size_t span = size + (event.bigram ? 1 : 0);
  const bool plain = scratch.name_space.plain_tokens();
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto tokens = event.tokens.subspan(i * size, span);
    scratch.blocks[i] = {.engine = event.hashes[i],
                         .block = plain
                                      ? hash_block(tokens, seed)
                                      : hash_block(tokens, seed, scratch.name_space.multimodal(i))};
  }
}

}  // namespace

BlockWriter::BlockWriter(Index& index, Slot slot, std::optional<std::uint32_t> block_size,
                         FeedTally& tally)
    : index_(index), slot_(slot), configured_size_(block_size), tally_(tally) {}

bool BlockWriter::adopt(const BlockWriter& other) {
  if (configured_size_ && other.shape_ && other.shape_->size != *configured_size_) return false;
  shape_ = other.shape_;
  seeds_ = other.seeds_;
  const Applied applied = restore_blocks(index_, slot_, list_blocks(index_.list(other.slot_)));
  tally_.stored += applied.done;
  count(Skipped::NoRoom, applied.no_room);
  return true;
}

void BlockWriter::count(Skipped reason, std::uint64_t how_many) {
  tally_.skipped[static_cast<std::size_t>(reason)] += how_many;
}

// Whether its blocks have the shape of the others.
bool BlockWriter::fits(const Event& event) const {
  if (event.block_size == 0 || event.block_size > kLargestBlock) return false;
  return !shape_ || *shape_ == shape_of(event);
}

void BlockWriter::refuse_size(std::uint64_t size, std::uint64_t blocks) {
  refused_size_ = size;
  count(Skipped::BlockSize, blocks);
}

// Nothing if it is not certain.
std::optional<std::uint64_t> BlockWriter::seed_for(const BlockNamespace& name_space,
                                                   std::optional<EngineHash> parent) const {
  const auto before = parent ? seeds_.find(*parent) : std::nullopt;
  if (!before) return name_space.seed();
  if (!name_space.salted()) return before->ambiguous ? std::nullopt : std::optional(before->value);
  if (!before->ambiguous && before->value != name_space.seed()) return std::nullopt;
  return name_space.seed();
}

void BlockWriter::store(const Event& event, Tier tier) {
  if (event.hashes.empty()) return;
  if (event.tokens.empty()) return copy(event.hashes, tier);
  if (configured_size_ && event.block_size != *configured_size_)
    return refuse_size(event.block_size, event.hashes.size());
  if (!fits(event)) return count(Skipped::BlockSize, event.hashes.size());
  // llm-d's simulator says 0 for none.
  const auto parent = event.parent == EngineHash{0} ? std::nullopt : event.parent;
  const std::size_t complete =
      (event.tokens.size() - (event.bigram ? 1 : 0)) / static_cast<std::size_t>(event.block_size);
  // With more tokens than hashes it is unknown which blocks were left out.
  const bool keys_fit = event.extra_keys.empty() || event.extra_key_blocks == 0 ||
                        event.extra_key_blocks == event.hashes.size();
  Scratch& own = scratch();
  if (complete > event.hashes.size() || !keys_fit || repeats(event, parent, own.seen))
    return count(Skipped::Malformed);
  if (complete < event.hashes.size()) count(Skipped::BlockSize, event.hashes.size() - complete);
  if (complete == 0) return;

  flush();
  own.name_space.read(event, !parent);
  const auto seed = seed_for(own.name_space, parent);
  if (!seed) return count(Skipped::AmbiguousSalt);
  if (!seeds_.has_room(complete, *seed)) return count(Skipped::NoRoom, complete);
  shape_ = shape_of(event);
  hash_blocks(event, complete, *seed, own);

  const Applied applied = index_.store(slot_, parent, own.blocks, tier);
  tally_.stored += applied.done;
  count(Skipped::UnknownParent, applied.unknown_parent);
  count(Skipped::NoRoom, applied.no_room);
  // Only its end is left out.
  const std::size_t held = std::min(own.blocks.size(), std::size_t{applied.done} + applied.known);
  seeds_.stored(std::span(own.blocks).first(held), *seed, tier);
}

void BlockWriter::copy(std::span<const EngineHash> blocks, Tier tier) {
  flush();
  const Applied applied = index_.copy(slot_, blocks, tier);
  tally_.stored += applied.done;
  count(Skipped::UnknownBlock, applied.unknown_parent);
  count(Skipped::NoRoom, applied.no_room);
  seeds_.copied(blocks, tier);
}

// vLLM removes one block per event. The index is much faster with many at once, so they wait for
// the first event of another kind.
void BlockWriter::remove(std::span<const EngineHash> blocks, Tier tier) {
  if (tier != removed_from_ || removed_.size() + blocks.size() > kMostWaiting) flush();
  if (blocks.size() > kMostWaiting) return remove_now(blocks, tier);
  removed_from_ = tier;
  removed_.insert(removed_.end(), blocks.begin(), blocks.end());
}

void BlockWriter::flush() {
  if (removed_.empty()) return;
  remove_now(removed_, removed_from_);
  removed_.clear();
}

void BlockWriter::remove_now(std::span<const EngineHash> blocks, Tier tier) {
  tally_.removed += index_.remove(slot_, blocks, tier).done;
  seeds_.removed(blocks, tier);
}

void BlockWriter::clear() {
  flush();
  index_.clear(slot_);
  seeds_.clear();
}

void BlockWriter::forget() {
  clear();
  shape_.reset();
}

}  // namespace baton::kvcache
