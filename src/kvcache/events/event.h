// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/index/index.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace baton::kvcache {

// More than an engine sends in one event.
inline constexpr std::size_t kMostHashes = 65'536;
inline constexpr std::size_t kMostTokens = 1'048'576;

// A key that sets a block apart beside its tokens.
struct ExtraKey {
  enum class Kind : std::uint8_t {
    Text,    // an adapter's name, a salt, or what an old vLLM calls an image
    Item,    // the name of an image or the like
    Number,  // the hash of one
    Other,   // the bytes of anything else
  };
  std::uint32_t block = 0;  // of the event's
  Kind kind = Kind::Text;
  std::string_view bytes = {};
  std::uint64_t number = 0;
};

// One event as an engine sent it: nothing is judged yet. Absent, nil and empty are the same. The
// views are into the engine's message.
struct EventFields {
  enum class Type : std::uint8_t { Stored, Removed, Cleared };
  Type type = Type::Cleared;
  bool named_fields = false;  // a map; else an array, as older engines send
  bool bigram = false;        // `tokens` came as pairs of neighbours, one fewer than tokens
  std::uint32_t extra_key_blocks = 0;  // blocks with an entry in the extra keys, even null
  std::uint32_t events = 1;            // of the engine's, see decode_events
  std::uint64_t block_size = 0;
  std::optional<EngineHash> parent;
  std::span<const TokenId> tokens;  // of token_buffer
  std::optional<std::uint64_t> lora_id;
  std::string_view lora_name;
  std::string_view cache_salt;
  std::string_view medium;
  std::optional<std::uint64_t> group;
  std::string_view kind;
  std::optional<std::uint64_t> sliding_window;
  std::string_view locality;
  std::string_view ownership;
  std::string_view session_id;
  // Position of the hashes in the message.
  std::size_t hashes_begin = 0;
  std::size_t hashes_end = 0;
};

// Used again and again, so that its buffers are allocated once.
struct Event : EventFields {
  std::vector<EngineHash> hashes;
  std::vector<TokenId> token_buffer;
  std::vector<ExtraKey> extra_keys;

  // Keeps the buffers.
  void reset() {
    static_cast<EventFields&>(*this) = {};
    hashes.clear();
    extra_keys.clear();
  }
};

}  // namespace baton::kvcache
