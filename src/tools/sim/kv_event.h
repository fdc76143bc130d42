// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/block_change.h"
#include "tools/sim/options.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace baton::sim {

// How hashes look in events.
enum class HashForm { Unsigned, Signed, Bytes };

// Fields of a release's events, by the last field of the table of positions: 5 lora_id, 6 medium, 7
// lora_name, 8 extra_keys, 9 group_idx, 11 the kind of attention.
struct EventFormat {
  KvEncoding encoding = KvEncoding::Array;
  HashForm hashes = HashForm::Unsigned;
  HashRule rule = HashRule::VllmCbor;
  unsigned last_field = 11;
  bool keys_of_every_block = true;  // a list of extra keys also where no block has any
  bool salts = false;               // SGLang: told beside the other fields, in an array as a map
  bool loras = false;               // an adapter's name is told
  bool nulls = true;                // in a map also of what is not there
  bool root_parent_zero = false;
  bool group_removals = false;  // SGLang: neighbours in one event
  const char* host_medium = "CPU";
  bool host_hashes_only = false;  // vLLM: a store on the host is nothing but its hash
  std::uint32_t block_size = 16;
};

EventFormat event_format(const Options& options);
// With 3 frames a replayed batch has no topic.
std::uint32_t replay_frames(const Options& options);

// Role. One event of a feed, field by field.
struct KvEvent {
  enum class Type { Stored, Removed, Cleared };
  Type type = Type::Cleared;
  std::vector<BlockHash> hashes = {};
  std::optional<BlockHash> parent = {};
  std::vector<TokenId> tokens = {};
  std::uint32_t block_size = 0;
  std::optional<std::uint32_t> lora_id = {};
  std::string medium = {};
  std::string lora_name = {};
  std::optional<std::vector<std::vector<std::string>>> extra_keys = {};  // of each block
  std::optional<std::uint32_t> group = {};
  std::string kind = {};
  std::string salt = {};
};

std::vector<KvEvent> events_of(const EventFormat& format, std::span<const BlockChange> changes);

// The payload of one message: seconds since 1970, the events, the data-parallel rank.
std::string encode_batch(const EventFormat& format, double time, std::span<const KvEvent> events,
                         std::uint32_t rank);

}  // namespace baton::sim
