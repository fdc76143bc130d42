// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#define XXH_INLINE_ALL
#include "kvcache/events/block_namespace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <xxhash.h>

namespace baton::kvcache {
namespace {

constexpr std::size_t kHexOfNumber = 16;
constexpr std::size_t kHexOfItem = 64;

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  });
}

// The number that Dynamo has for an item: the first digits of its digest.
std::uint64_t item_hash(std::string_view name) {
  if (name.size() < kHexOfNumber || !is_hex(name)) return XXH3_64bits(name.data(), name.size());
  std::uint64_t number = 0;
  std::from_chars(name.data(), name.data() + kHexOfNumber, number, 16);
  return number;
}

std::uint64_t hash_of(const ExtraKey& key) {
  return key.kind == ExtraKey::Kind::Number ? key.number : item_hash(key.bytes);
}

// A bare text is the adapter, the salt, or (vLLM 0.17 and 0.18, which send arrays) an image. Images
// are digests there, unless the client named them.
bool may_be_salt(const ExtraKey& key, const Event& event) {
  if (key.kind != ExtraKey::Kind::Text || key.block != 0 || key.bytes.empty()) return false;
  if (key.bytes == event.lora_name) return false;
  return event.named_fields || key.bytes.size() != kHexOfItem || !is_hex(key.bytes);
}

// No request can name an adapter whose name is not known.
std::string nameless_adapter(std::uint64_t id) { return fmt::format("{}lora_id={}", '\0', id); }

}  // namespace

void BlockNamespace::read(const Event& event, bool begins) {
  keys_.clear();
  next_ = 0;
  std::string_view salt = event.cache_salt;
  const ExtraKey* salt_key = nullptr;
  if (salt.empty() && begins) {
    for (const ExtraKey& key : event.extra_keys) {
      if (may_be_salt(key, event)) salt_key = &key;  // the last one: images stand before it
    }
    if (salt_key != nullptr) salt = salt_key->bytes;
  }
  for (const ExtraKey& key : event.extra_keys) {
    const bool is_name = key.kind == ExtraKey::Kind::Text &&
                         (key.bytes.empty() || key.bytes == event.lora_name || key.bytes == salt);
    if (!is_name) keys_.push_back({.block = key.block, .hash = hash_of(key)});
  }
  if (!std::ranges::is_sorted(keys_, {}, &Key::block)) std::ranges::sort(keys_, {}, &Key::block);
  salted_ = !salt.empty();
  std::string nameless;
  if (event.lora_name.empty() && event.lora_id.value_or(0) != 0)
    nameless = nameless_adapter(*event.lora_id);
  seed_ = seed_of(
      {.lora = nameless.empty() ? event.lora_name : std::string_view(nameless), .salt = salt});
}

std::span<const std::uint64_t> BlockNamespace::multimodal(std::uint32_t block) {
  of_block_.clear();
  for (; next_ < keys_.size() && keys_[next_].block <= block; ++next_) {
    if (keys_[next_].block == block) of_block_.push_back(keys_[next_].hash);
  }
  return of_block_;
}

}  // namespace baton::kvcache
