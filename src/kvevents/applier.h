// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "kvevents/feed.h"
#include "kvindex/index.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace baton::kvevents {

// What a batch says of itself.
struct BatchHead {
  double timestamp = 0;  // the engine's clock, seconds since 1970
  std::optional<std::uint32_t> rank;
};
// Reads no further than needed; an error where it is no batch.
Result<BatchHead> read_batch_head(std::span<const std::byte> payload);

// Role. Applies one (worker, rank)'s events to the index: reads every encoding, leaves out what does
//   not say that a prefix can be used again, and hashes tokens.
// Confinement. One thread at a time: the one that writes the slot.
// Invariants. One bad event does not cost its batch, unless the encoding itself is broken; then what
//   came before it in the batch stays applied.
class Applier {
 public:
  // `block_size`: nothing: that of the first store.
  Applier(kvindex::Index& index, kvindex::Slot slot, std::optional<std::uint32_t> block_size);
  ~Applier();

  // The payload frame of vLLM's, SGLang's and their likes' messages.
  Result<BatchHead> apply_batch(std::span<const std::byte> payload);
  // The answer to TensorRT-LLM's POST /kv_cache_events: only the entries of `rank`.
  Result<void> apply_trtllm(std::string_view json);
  // Nothing that was said so far counts any more.
  void forget();

  const Tally& tally() const;
  std::optional<kvindex::BlockShape> shape() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace baton::kvevents
