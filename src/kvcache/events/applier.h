// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "kvcache/events/feed.h"
#include "kvcache/index/index.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace baton::kvcache {

// The head of a batch.
struct BatchHead {
  double timestamp = 0;  // the engine's clock, seconds since 1970
  std::optional<std::uint32_t> rank;
};
// Reads no further than needed; an error if it is no batch.
Result<BatchHead> read_batch_head(std::span<const std::byte> payload);

// Counts of one answer of an engine that is polled for its events.
struct Polled {
  std::uint64_t events = 0;
  std::uint64_t lost = 0;      // dropped by the engine for lack of room; ends all known before
  std::uint64_t restarts = 0;  // of the engine, seen in its numbering
  std::optional<std::uint64_t> last_id;  // of the last event
};

// Role. Applies one (worker, rank)'s events to the index: reads every encoding, filters out events
//   that do not make a prefix reusable, and hashes tokens.
// Confinement. One thread at a time: the one that writes the slot.
// Lifetime. The index outlives it.
// Invariants. One bad event does not cost its batch, unless the encoding itself is broken; then the
//   events before it in the batch stay applied.
class Applier {
 public:
  // `block_size`: the configured size, others are refused; nothing: that of the first store.
  Applier(Index& index, Slot slot, std::optional<std::uint32_t> block_size);
  ~Applier();

  // The payload frame of vLLM's, SGLang's and their likes' messages.
  Result<BatchHead> apply_batch(std::span<const std::byte> payload);
  // The answer to TensorRT-LLM's POST /kv_cache_events, which has all ranks' entries: only those of
  // `rank`. An entry without a rank belongs to the first.
  Result<Polled> apply_trtllm(std::string_view json, std::uint32_t rank);
  // Requires: nothing was applied yet. The events that the other has heard so far hold here as
  // well.
  void adopt(const Applier& other);
  // Nothing that was said so far counts any more: the slot is cleared.
  void forget();

  const FeedTally& tally() const;
  // Nothing before the first store.
  std::optional<BlockShape> shape() const;
  // That blocks had which were refused, because another size is configured; 0: none were.
  std::uint64_t refused_size() const;
  // See FeedStatus.
  bool resumable() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace baton::kvcache
