// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/trtllm_events.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <charconv>
#include <limits>

namespace baton::kvcache {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

// simdjson holds some fourteen bytes per byte of text; for longer texts that is given back.
constexpr std::size_t kKeptText = 256 * 1024;

std::optional<std::uint64_t> number(const object& from, std::string_view key) {
  std::uint64_t value = 0;
  if (from[key].get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

std::string_view text(const object& from, std::string_view key) {
  std::string_view value;
  if (from[key].get(value) != simdjson::SUCCESS) return {};
  return value;
}

// A number of either sign, or hexadecimal digits: their last eight bytes.
std::optional<EngineHash> hash_of(const element& value) {
  std::uint64_t number = 0;
  if (value.get(number) == simdjson::SUCCESS) return number;
  std::int64_t negative = 0;
  if (value.get(negative) == simdjson::SUCCESS) return static_cast<std::uint64_t>(negative);
  std::string_view digits;
  constexpr std::size_t kDigits = 16;
  if (value.get(digits) != simdjson::SUCCESS || digits.empty()) return std::nullopt;
  if (digits.size() > kDigits) digits.remove_prefix(digits.size() - kDigits);
  const char* const end = digits.data() + digits.size();
  const auto [last, problem] = std::from_chars(digits.data(), end, number, 16);
  if (problem != std::errc() || last != end) return std::nullopt;
  return number;
}

// Reads one entry's data into it; says whether that is as it should be.
class EntryReader {
 public:
  explicit EntryReader(TrtllmEntry& entry) : entry_(entry), event_(entry.event) {}

  Decoded read(const object& data) {
    const std::string_view type = text(data, "type");
    if (type.empty()) return Decoded::Malformed;
    if (type == "created") {
      entry_.type = TrtllmEntry::Type::Created;
      return Decoded::Event;
    }
    if (type == "stored") return read_stored(data);
    if (type == "removed") return read_removed(data);
    if (type == "updated") return read_updated(data);
    return Decoded::UnknownType;
  }

 private:
  Decoded read_stored(const object& data) {
    entry_.type = TrtllmEntry::Type::Stored;
    event_.type = Event::Type::Stored;
    event_.named_fields = true;
    element parent;
    if (data["parent_hash"].get(parent) == simdjson::SUCCESS && !parent.is_null()) {
      event_.parent = hash_of(parent);
      if (!event_.parent) return Decoded::Malformed;
    }
    event_.lora_name = text(data, "lora_name");
    event_.lora_id = number(data, "lora_id");
    event_.cache_salt = text(data, "cache_salt");
    array blocks;
    if (data["blocks"].get(blocks) != simdjson::SUCCESS) return Decoded::Malformed;
    for (const element block : blocks) {
      if (event_.hashes.size() == kMostHashes) return Decoded::TooLarge;
      object members;
      if (block.get(members) != simdjson::SUCCESS) return Decoded::Malformed;
      if (const auto problem = read_block(members); problem != Decoded::Event) return problem;
    }
    event_.tokens = std::span(event_.token_buffer).first(tokens_);
    event_.extra_key_blocks = static_cast<std::uint32_t>(event_.hashes.size());
    return Decoded::Event;
  }

  Decoded read_block(const object& block) {
    element value;
    if (block["block_hash"].get(value) != simdjson::SUCCESS) return Decoded::Malformed;
    const auto hash = hash_of(value);
    if (!hash) return Decoded::Malformed;
    const auto at = static_cast<std::uint32_t>(event_.hashes.size());
    // All blocks of a store are of one request, so they have these in common.
    if (at == 0 && event_.lora_name.empty()) event_.lora_name = text(block, "lora_name");
    if (at == 0 && !event_.lora_id) event_.lora_id = number(block, "lora_id");
    if (const auto salt = text(block, "cache_salt"); !salt.empty()) {
      if (at > 0 && salt != event_.cache_salt) return Decoded::Malformed;
      event_.cache_salt = salt;
    }
    event_.hashes.push_back(*hash);
    entry_.levels.push_back(number(block, "cache_level").value_or(0));
    if (const auto problem = read_tokens(block, at); problem != Decoded::Event) return problem;
    return read_items(block, at);
  }

  Decoded read_tokens(const object& block, std::uint32_t at) {
    array tokens;
    if (block["tokens"].get(tokens) != simdjson::SUCCESS) return Decoded::Malformed;
    const std::size_t before = tokens_;
    for (const element token : tokens) {
      if (tokens_ == kMostTokens) return Decoded::TooLarge;
      object members;
      std::uint64_t id = 0;
      // Some relays leave out the frame around a token.
      if (token.get(members) == simdjson::SUCCESS) {
        if (members["token_id"].get(id) != simdjson::SUCCESS) return Decoded::Malformed;
        if (const auto extra = number(members, "token_extra_id"); extra.value_or(0) != 0)
          add_key({.block = at, .kind = ExtraKey::Kind::Number, .number = *extra});
      } else if (token.get(id) != simdjson::SUCCESS) {
        return Decoded::Malformed;
      }
      if (id > std::numeric_limits<TokenId>::max()) return Decoded::Malformed;
      auto& buffer = event_.token_buffer;
      if (tokens_ == buffer.size()) buffer.resize(buffer.size() * 2 + 64);
      buffer[tokens_++] = static_cast<TokenId>(id);
    }
    entry_.block_tokens.push_back(static_cast<std::uint32_t>(tokens_ - before));
    return Decoded::Event;
  }

  Decoded read_items(const object& block, std::uint32_t at) {
    element keys;
    if (block["mm_keys"].get(keys) != simdjson::SUCCESS || keys.is_null()) return Decoded::Event;
    array items;
    if (keys.get(items) != simdjson::SUCCESS) return Decoded::Malformed;
    for (const element item : items) {
      object members;
      element hash;
      if (item.get(members) != simdjson::SUCCESS || members["hash"].get(hash) != simdjson::SUCCESS)
        return Decoded::Malformed;
      ExtraKey key{.block = at};
      if (hash.get(key.bytes) == simdjson::SUCCESS) {
        key.kind = ExtraKey::Kind::Item;
      } else if (hash.get(key.number) == simdjson::SUCCESS) {
        key.kind = ExtraKey::Kind::Number;
      } else {
        return Decoded::Malformed;
      }
      add_key(key);
    }
    return Decoded::Event;
  }

  // The tokens of one image have one extra id each and the same: once is enough.
  void add_key(const ExtraKey& key) {
    if (!event_.extra_keys.empty()) {
      const ExtraKey& last = event_.extra_keys.back();
      if (last.block == key.block && last.kind == key.kind && last.number == key.number &&
          last.bytes == key.bytes)
        return;
    }
    event_.extra_keys.push_back(key);
  }

  Decoded read_removed(const object& data) {
    entry_.type = TrtllmEntry::Type::Removed;
    event_.type = Event::Type::Removed;
    array hashes;
    if (data["block_hashes"].get(hashes) != simdjson::SUCCESS) return Decoded::Malformed;
    for (const element value : hashes) {
      if (event_.hashes.size() == kMostHashes) return Decoded::TooLarge;
      const auto hash = hash_of(value);
      if (!hash) return Decoded::Malformed;
      event_.hashes.push_back(*hash);
    }
    return Decoded::Event;
  }

  Decoded read_updated(const object& data) {
    element value;
    if (data["block_hash"].get(value) != simdjson::SUCCESS) return Decoded::Malformed;
    const auto hash = hash_of(value);
    if (!hash) return Decoded::Malformed;
    element level;
    if (data["cache_level"].get(level) != simdjson::SUCCESS || level.is_null())
      return Decoded::Event;  // only how long it is to be kept
    object change;
    if (level.get(change) != simdjson::SUCCESS) return Decoded::Malformed;
    const auto from = number(change, "old_value");
    const auto to = number(change, "new_value");
    if (!from || !to) return Decoded::Malformed;
    entry_.type = TrtllmEntry::Type::Moved;
    entry_.from_level = *from;
    entry_.to_level = *to;
    event_.hashes.push_back(*hash);
    return Decoded::Event;
  }

  TrtllmEntry& entry_;
  Event& event_;
  std::size_t tokens_ = 0;
};

void read_entry(const element& value, TrtllmEntry& entry) {
  entry.event.reset();
  entry.block_tokens.clear();
  entry.levels.clear();
  entry.outcome = Decoded::Malformed;
  entry.type = TrtllmEntry::Type::Other;
  entry.id.reset();
  entry.rank = 0;
  entry.window.reset();
  object members;
  if (value.get(members) != simdjson::SUCCESS) return;
  entry.id = number(members, "event_id");
  entry.window = number(members, "window_size");
  const std::uint64_t rank = number(members, "attention_dp_rank").value_or(0);
  if (rank > std::numeric_limits<std::uint32_t>::max()) return;
  entry.rank = static_cast<std::uint32_t>(rank);
  object data;
  if (members["data"].get(data) == simdjson::SUCCESS) entry.outcome = EntryReader(entry).read(data);
}

}  // namespace

struct TrtllmReader::State {
  simdjson::dom::parser parser;
  TrtllmEntry entry;
};

TrtllmReader::TrtllmReader() : state_(std::make_unique<State>()) {}
TrtllmReader::~TrtllmReader() = default;

Result<void> TrtllmReader::read(std::string_view json,
                                const std::function<void(TrtllmEntry&)>& visit) {
  element root;
  const auto problem = state_->parser.parse(json.data(), json.size()).get(root);
  array entries;
  Result<void> result;
  if (problem != simdjson::SUCCESS) {
    result =
        fail(Errc::EngineProtocol, fmt::format("POST /kv_cache_events: the answer is no JSON: {}",
                                               simdjson::error_message(problem)));
  } else if (root.get(entries) != simdjson::SUCCESS) {
    result = fail(Errc::EngineProtocol, "POST /kv_cache_events: the answer is no list");
  } else {
    for (const element entry : entries) {
      read_entry(entry, state_->entry);
      visit(state_->entry);
    }
  }
  if (json.size() > kKeptText) state_ = std::make_unique<State>();
  return result;
}

}  // namespace baton::kvcache
