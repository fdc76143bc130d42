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

// What a batch says of itself.
struct BatchHead {
  double timestamp = 0;  // the engine's clock, seconds since 1970
  std::optional<std::uint32_t> rank;
};
// Reads no further than needed; an error where it is no batch.
Result<BatchHead> read_batch_head(std::span<const std::byte> payload);

// What an answer of an engine that is asked for its events again and again held.
struct Polled {
  std::uint64_t events = 0;
  std::uint64_t lost = 0;      // that the engine had no room for; what was known before was dropped
  std::uint64_t restarts = 0;  // of the engine, seen in its numbering
  std::optional<std::uint64_t> last_id;  // of the last event
};

// Role. Applies one (worker, rank)'s events to the index: reads every encoding, leaves out what does
//   not say that a prefix can be used again, and hashes tokens.
// Confinement. One thread at a time: the one that writes the slot.
// Lifetime. The index outlives it.
// Invariants. One bad event does not cost its batch, unless the encoding itself is broken; then what
//   came before it in the batch stays applied.
class Applier {
 public:
  // `block_size`: as configured, others are refused; nothing: that of the first store.
  Applier(Index& index, Slot slot, std::optional<std::uint32_t> block_size);
  ~Applier();

  // The payload frame of vLLM's, SGLang's and their likes' messages.
  Result<BatchHead> apply_batch(std::span<const std::byte> payload);
  // The answer to TensorRT-LLM's POST /kv_cache_events, which has all ranks' entries: only those of
  // `rank`. One that names none is of the first.
  Result<Polled> apply_trtllm(std::string_view json, std::uint32_t rank);
  // Requires: nothing was applied yet. What the other has heard so far holds here as well.
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
