// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "kvcache/events/event.h"
#include "kvcache/events/event_decoder.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace baton::kvcache {

// One entry of TensorRT-LLM's answer to POST /kv_cache_events.
struct TrtllmEntry {
  enum class Type : std::uint8_t {
    Created,  // the cache was made
    Stored,
    Removed,  // from whichever tier
    Moved,    // from one tier to another
    Other,    // says nothing of where blocks are
  };
  Decoded outcome = Decoded::Malformed;  // the numbers below are right in any case
  std::optional<std::uint64_t> id;
  std::uint32_t rank = 0;
  std::optional<std::uint64_t> window;  // of the attention that the cache belongs to

  Type type = Type::Other;
  Event event;  // hashes; of a store the parent, tokens of all blocks, adapter, salt and extra keys
  // In a store, per block.
  std::vector<std::uint32_t> block_tokens;
  std::vector<std::uint64_t> levels;  // 0 device, 1 host
  // In a move.
  std::uint64_t from_level = 0;
  std::uint64_t to_level = 0;
};

// Role. Reads such an answer.
// Confinement. One thread.
// Invariants. The whole answer is checked before its first entry is reported; a malformed entry
//   does not cost the others. A huge answer's memory is given back.
class TrtllmReader {
 public:
  TrtllmReader();
  ~TrtllmReader();

  // The entry is valid during the call.
  Result<void> read(std::string_view json, const std::function<void(TrtllmEntry&)>& visit);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace baton::kvcache
