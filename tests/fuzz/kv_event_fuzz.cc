// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fuzz/fuzz_input.h"
#include "kvcache/events/applier.h"
#include "kvcache/events/event_decoder.h"
#include "kvcache/index/index.h"

#include <cstdint>
#include <span>
#include <unordered_set>

namespace {

using namespace baton;
using fuzz::require;

// What a slot holds is at most what the tally says was stored.
void check(const kvcache::Index& index, kvcache::Slot slot, const kvcache::Applier& applier) {
  std::uint64_t held = 0;
  for (const std::size_t blocks : index.holding(slot).blocks) held += blocks;
  require(held <= applier.tally().stored, "nothing is held that was not stored");
  std::unordered_set<kvcache::SequenceHash> visited;  // an engine may have two names for one
  index.visit(slot, [&](const kvcache::Index::Held& block) {
    require(block.tiers != 0, "a block held is in a tier");
    visited.insert(block.sequence);
  });
  require(visited.size() <= held, "a block is held in one tier at least");
}

// Reading removals that are alike at once gives what reading each by itself does.
void check_decoder(std::span<const std::byte> payload) {
  wire::MsgpackReader many(payload);
  wire::MsgpackReader single(payload);
  const auto opening = kvcache::open_batch(many);
  if (!opening || !kvcache::open_batch(single)) return;
  kvcache::Event all;
  kvcache::Event one;
  for (std::uint32_t left = opening->events; left > 0; left -= all.events) {
    const auto outcome = kvcache::decode_events(many, all, left);
    require(all.events >= 1 && all.events <= left, "it is of events that there are");
    require(all.events == 1 || all.hashes.size() == all.events, "each of them is of one block");
    for (std::uint32_t i = 0; i < all.events; ++i) {
      require(kvcache::decode_event(single, one) == outcome, "both ways end alike");
      if (all.events == 1) break;
      require(one.type == all.type && one.medium == all.medium && one.group == all.group &&
                  one.kind == all.kind && one.locality == all.locality &&
                  one.ownership == all.ownership && one.named_fields == all.named_fields &&
                  one.hashes.size() == 1 && one.hashes[0] == all.hashes[i],
              "both ways read the same");
    }
    if (outcome == kvcache::Decoded::Broken) return;
    if (!many.broken()) require(many.position() == single.position(), "both come as far");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto payload = std::as_bytes(std::span(data, size));
  check_decoder(payload);
  static kvcache::Index index({.blocks = 1000});  // to make one takes longer than all the rest
  const kvcache::Slot slot = index.join({.worker = {1}, .rank = 0});
  kvcache::Applier applier(index, slot, std::nullopt);
  const auto head = kvcache::read_batch_head(payload);
  // Twice: a batch may be repeated.
  for (int i = 0; i < 2; ++i) {
    const auto applied = applier.apply_batch(payload);
    require(applied.has_value() == head.has_value(), "both readers judge alike");
    if (applied) {
      require(applied->rank == head->rank, "both readers find the same rank");
    } else {
      require(!applied.error().message().empty(), "a refusal says why");
    }
    check(index, slot, applier);
  }
  require(applier.tally().batches == 2, "every batch is counted");
  applier.forget();
  require(index.holding(slot).blocks[0] == 0, "what is forgotten is gone");
  index.leave(slot);
  require(index.size().blocks == 0, "a slot leaves nothing behind");
  return 0;
}
