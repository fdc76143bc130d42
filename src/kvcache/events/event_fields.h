// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/events/event.h"
#include "wire/msgpack_reader.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace baton::kvcache {

enum class Field : std::uint8_t {
  Unknown,
  Type,
  BlockHashes,
  Parent,
  TokenIds,
  BlockSize,
  LoraId,
  Medium,
  LoraName,
  LoraNameOrMetadata,  // in arrays: SGLang has a map there, which holds the salt
  ExtraKeys,
  Group,
  SpecKind,
  SlidingWindow,
  Locality,
  Ownership,
  SessionId,
  CacheSalt,
  MultimodalInfos,
};

// Role. Reads an event's fields one after the other, in every form of naming them.
// Confinement. One thread.
// Lifetime. One event; the reader and the event outlive it.
// Invariants. A field takes exactly one value, also if it is not of the right type; only a broken
//   encoding stops it.
class FieldReader {
 public:
  FieldReader(wire::MsgpackReader& reader, Event& event) : reader_(reader), event_(event) {}

  void read(Field field);

  bool has(Field field) const { return (seen_ >> static_cast<unsigned>(field) & 1U) != 0; }
  bool malformed() const { return malformed_; }
  bool too_large() const { return too_large_; }

 private:
  void refuse();
  void read_text(std::string_view& text);
  void read_number(std::optional<std::uint64_t>& number);
  std::optional<std::uint64_t> read_hash();
  void read_hashes();
  void read_parent();
  void read_tokens();
  void read_pairs(std::uint32_t count);
  void read_block_size();
  void read_metadata();
  void read_extra_keys();
  void read_extra_key(std::uint32_t block);
  void read_multimodal_infos();
  void read_multimodal_objects(std::uint32_t block);

  wire::MsgpackReader& reader_;
  Event& event_;
  std::uint32_t seen_ = 0;
  bool malformed_ = false;
  bool too_large_ = false;
};

}  // namespace baton::kvcache
