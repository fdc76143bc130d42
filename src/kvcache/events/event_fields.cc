// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/event_fields.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace baton::kvcache {
namespace {

using Kind = wire::MsgpackReader::Kind;

// More than a block can show.
constexpr std::size_t kMostExtraKeys = kMostHashes;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The engine would send a digest's last eight bytes as a number.
std::uint64_t fold(std::span<const std::byte> digest) {
  std::uint64_t hash = 0;
  for (const std::byte byte : digest.last(std::min(digest.size(), sizeof(hash))))
    hash = hash << 8U | static_cast<std::uint8_t>(byte);
  return hash;
}

}  // namespace

void FieldReader::read(Field field) {
  seen_ |= 1U << static_cast<unsigned>(field);
  switch (field) {
    case Field::BlockHashes:
      return read_hashes();
    case Field::Parent:
      return read_parent();
    case Field::TokenIds:
      return read_tokens();
    case Field::BlockSize:
      return read_block_size();
    case Field::LoraId:
      return read_number(event_.lora_id);
    case Field::Medium:
      return read_text(event_.medium);
    case Field::LoraNameOrMetadata:
      if (reader_.kind() == Kind::Map) return read_metadata();
      return read_text(event_.lora_name);
    case Field::LoraName:
      return read_text(event_.lora_name);
    case Field::ExtraKeys:
      return read_extra_keys();
    case Field::Group:
      return read_number(event_.group);
    case Field::SpecKind:
      return read_text(event_.kind);
    case Field::SlidingWindow:
      return read_number(event_.sliding_window);
    case Field::Locality:
      return read_text(event_.locality);
    case Field::Ownership:
      return read_text(event_.ownership);
    case Field::SessionId:
      return read_text(event_.session_id);
    case Field::CacheSalt:
      return read_text(event_.cache_salt);
    case Field::MultimodalInfos:
      return read_multimodal_infos();
    case Field::Unknown:
    case Field::Type:
      break;
  }
  reader_.skip();
}

void FieldReader::refuse() {
  malformed_ = true;
  reader_.skip();
}

void FieldReader::read_text(std::string_view& text) {
  text = {};
  if (reader_.read_nil()) return;
  if (const auto read = reader_.read_text()) {
    text = *read;
  } else {
    refuse();
  }
}

void FieldReader::read_number(std::optional<std::uint64_t>& number) {
  number.reset();
  if (reader_.read_nil()) return;
  number = reader_.read_unsigned();
  if (!number) refuse();
}

std::optional<std::uint64_t> FieldReader::read_hash() {
  if (const auto number = reader_.read_integer()) return number;
  const auto digest = reader_.read_bytes();
  if (!digest || digest->empty()) return std::nullopt;
  return fold(*digest);
}

void FieldReader::read_hashes() {
  event_.hashes.clear();
  if (reader_.kind() != Kind::Array) return refuse();
  const std::size_t begin = reader_.position();
  const auto count = reader_.read_array();
  if (!count) return;
  if (*count > kMostHashes) {
    too_large_ = true;
    reader_.rewind(begin);
    reader_.skip();
    return;
  }
  event_.hashes.reserve(*count);
  event_.hashes_begin = reader_.position();
  for (std::uint32_t i = 0; i < *count && !reader_.broken(); ++i) {
    const std::size_t before = reader_.position();
    if (const auto hash = read_hash()) {
      event_.hashes.push_back(*hash);
    } else if (!reader_.broken()) {
      reader_.rewind(before);
      refuse();
    }
  }
  event_.hashes_end = reader_.position();
}

void FieldReader::read_parent() {
  event_.parent.reset();
  if (reader_.read_nil()) return;
  const std::size_t before = reader_.position();
  event_.parent = read_hash();
  if (event_.parent || reader_.broken()) return;
  reader_.rewind(before);
  refuse();
}

void FieldReader::read_tokens() {
  event_.tokens = {};
  event_.bigram = false;
  if (reader_.read_nil()) return;
  if (reader_.kind() != Kind::Array) return refuse();
  const std::size_t begin = reader_.position();
  const auto count = reader_.read_array();
  if (!count) return;
  if (*count > kMostTokens) {
    too_large_ = true;
    reader_.rewind(begin);
    reader_.skip();
    return;
  }
  if (event_.token_buffer.size() <= *count) event_.token_buffer.resize(std::size_t{*count} + 1);
  if (reader_.kind() == Kind::Array && *count > 0) return read_pairs(*count);
  const std::uint32_t read = reader_.read_u32s(event_.token_buffer.data(), *count);
  for (std::uint32_t i = read; i < *count && !reader_.broken(); ++i) refuse();
  event_.tokens = std::span(event_.token_buffer).first(read);
}

// Each pair begins with the token that the one before it ends with.
void FieldReader::read_pairs(std::uint32_t count) {
  event_.bigram = true;
  auto& tokens = event_.token_buffer;
  for (std::uint32_t i = 0; i < count && !reader_.broken(); ++i) {
    const std::size_t before = reader_.position();
    std::uint32_t pair[2];
    const auto size = reader_.read_array();
    const bool is_pair = size && *size == 2 && reader_.read_u32s(pair, 2) == 2;
    if (reader_.broken()) return;
    if (!is_pair || (i > 0 && tokens[i] != pair[0])) {
      reader_.rewind(before);
      for (; i < count && !reader_.broken(); ++i) refuse();
      return;
    }
    tokens[i] = pair[0];
    tokens[std::size_t{i} + 1] = pair[1];
  }
  event_.tokens = std::span(tokens).first(std::size_t{count} + 1);
}

void FieldReader::read_block_size() {
  event_.block_size = 0;
  if (reader_.read_nil()) return;
  if (const auto size = reader_.read_unsigned()) {
    event_.block_size = *size;
  } else {
    refuse();
  }
}

void FieldReader::read_metadata() {
  event_.cache_salt = {};
  const auto count = reader_.read_map();
  if (!count) return;
  for (std::uint32_t i = 0; i < *count && !reader_.broken(); ++i) {
    const auto name = reader_.read_text();
    if (!name) reader_.skip();
    if (name == "cache_salt") {
      read_text(event_.cache_salt);
    } else {
      reader_.skip();
    }
  }
}

void FieldReader::read_extra_keys() {
  if (reader_.read_nil()) return;
  if (reader_.kind() != Kind::Array) return refuse();
  const auto blocks = reader_.read_array();
  if (!blocks) return;
  event_.extra_key_blocks = *blocks;
  for (std::uint32_t block = 0; block < *blocks && !reader_.broken(); ++block) {
    if (reader_.read_nil()) continue;
    if (reader_.kind() != Kind::Array) {
      refuse();
      continue;
    }
    const auto keys = reader_.read_array();
    for (std::uint32_t i = 0; i < keys.value_or(0) && !reader_.broken(); ++i) read_extra_key(block);
  }
}

void FieldReader::read_extra_key(std::uint32_t block) {
  if (reader_.read_nil()) return;
  if (event_.extra_keys.size() >= kMostExtraKeys) too_large_ = true;
  ExtraKey key{.block = block};
  const std::size_t begin = reader_.position();
  if (const auto text = reader_.read_text()) {
    key.bytes = *text;
  } else if (!reader_.broken()) {
    key.kind = ExtraKey::Kind::Other;
    // [name, start]
    const auto size = reader_.read_array();
    const auto name = size && *size == 2 ? reader_.read_text() : std::nullopt;
    reader_.rewind(begin);
    if (!reader_.skip()) return;
    key.bytes = text_of(reader_.between(begin, reader_.position()));
    if (name) {
      key.kind = ExtraKey::Kind::Item;
      key.bytes = *name;
    }
  }
  if (!too_large_) event_.extra_keys.push_back(key);
}

// Per block nil, or {mm_objects: [{mm_hash: number, …}, …]}.
void FieldReader::read_multimodal_infos() {
  if (reader_.read_nil()) return;
  if (reader_.kind() != Kind::Array) return refuse();
  const auto blocks = reader_.read_array();
  for (std::uint32_t block = 0; block < blocks.value_or(0) && !reader_.broken(); ++block) {
    if (reader_.read_nil()) continue;
    const auto members = reader_.read_map();
    if (!members) {
      refuse();
      continue;
    }
    for (std::uint32_t i = 0; i < *members && !reader_.broken(); ++i) {
      const auto name = reader_.read_text();
      if (!name) reader_.skip();
      if (name == "mm_objects") {
        read_multimodal_objects(block);
      } else {
        reader_.skip();
      }
    }
  }
}

void FieldReader::read_multimodal_objects(std::uint32_t block) {
  const auto objects = reader_.read_array();
  if (!objects) return refuse();
  for (std::uint32_t i = 0; i < *objects && !reader_.broken(); ++i) {
    const auto members = reader_.read_map();
    if (!members) {
      refuse();
      continue;
    }
    for (std::uint32_t j = 0; j < *members && !reader_.broken(); ++j) {
      const auto name = reader_.read_text();
      if (!name) reader_.skip();
      const auto hash = name == "mm_hash" ? reader_.read_integer() : std::nullopt;
      if (!hash) {
        reader_.skip();
      } else if (event_.extra_keys.size() >= kMostExtraKeys) {
        too_large_ = true;
      } else {
        event_.extra_keys.push_back(
            {.block = block, .kind = ExtraKey::Kind::Number, .number = *hash});
      }
    }
  }
}

}  // namespace baton::kvcache
