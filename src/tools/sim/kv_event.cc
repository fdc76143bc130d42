// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/kv_event.h"

#include "tools/sim/msgpack_writer.h"

#include <algorithm>
#include <variant>

namespace baton::sim {
namespace {

using model::Engine;
using model::Version;

enum Field : unsigned { kLoraId = 5, kMedium, kLoraName, kExtraKeys, kGroup, kKind, kWindow };

// Its events are maps, and tell adapters; a replayed batch has its topic.
constexpr Version kSglangMaps{0, 5, 23};

unsigned last_vllm_field(const Version& release) {
  if (release >= Version{0, 22, 0}) return kWindow;
  if (release >= Version{0, 20, 0}) return kGroup;
  if (release >= Version{0, 17, 0}) return kExtraKeys;
  if (release >= Version{0, 14, 0}) return kLoraName;
  return release >= Version{0, 10, 2} ? kMedium : kLoraId;
}

KvEvent stored_event(const EventFormat& format, const BlocksStored& stored) {
  if (stored.tier == Tier::Host && format.host_hashes_only) {
    return {.type = KvEvent::Type::Stored,
            .hashes = stored.hashes,
            .medium = format.host_medium,
            .group = 0};
  }
  KvEvent event{.type = KvEvent::Type::Stored,
                .hashes = stored.hashes,
                .parent = stored.parent,
                .tokens = stored.tokens,
                .block_size = format.block_size,
                .medium = stored.tier == Tier::Device ? "GPU" : format.host_medium};
  if (format.salts) event.salt = stored.scope.salt;
  if (format.loras) event.lora_name = stored.scope.lora;
  if (!is_vllm(format.rule)) return event;
  if (stored.scope.lora_id != 0) event.lora_id = stored.scope.lora_id;
  std::vector<std::vector<std::string>> keys(stored.hashes.size());
  if (!stored.scope.lora.empty()) {
    for (auto& of_block : keys) of_block.push_back(stored.scope.lora);
  }
  if (!stored.parent && !stored.scope.salt.empty()) keys.front().push_back(stored.scope.salt);
  const bool any =
      std::ranges::any_of(keys, [](const auto& of_block) { return !of_block.empty(); });
  if (any || format.keys_of_every_block) event.extra_keys = std::move(keys);
  event.group = 0;
  event.kind = "full_attention";
  return event;
}

void add_removed(const EventFormat& format, const BlockRemoved& removed,
                 std::vector<KvEvent>& events) {
  const std::string medium = removed.tier == Tier::Device ? "GPU" : format.host_medium;
  if (format.group_removals && !events.empty() && events.back().type == KvEvent::Type::Removed &&
      events.back().medium == medium) {
    events.back().hashes.push_back(removed.hash);
    return;
  }
  KvEvent event{.type = KvEvent::Type::Removed, .hashes = {removed.hash}, .medium = medium};
  if (is_vllm(format.rule)) event.group = 0;
  events.push_back(std::move(event));
}

// Role. Writes events in one format.
// Confinement, Lifetime. Inside `encode_batch`.
class EventWriter {
 public:
  EventWriter(const EventFormat& format, MsgpackWriter& out) : format_(format), out_(out) {}

  void write(const KvEvent& event) {
    const bool map = format_.encoding == KvEncoding::Map;
    switch (event.type) {
      case KvEvent::Type::Stored:
        return map ? stored_map(event) : stored_array(event);
      case KvEvent::Type::Removed:
        return map ? removed_map(event) : removed_array(event);
      case KvEvent::Type::Cleared:
        if (map) {
          out_.map(1);
          out_.text("type");
        } else {
          out_.array(1);
        }
        out_.text("AllBlocksCleared");
    }
  }

 private:
  void stored_array(const KvEvent& event) {
    const bool salted = format_.salts && !event.salt.empty();
    out_.array(format_.last_field + 1 + static_cast<unsigned>(salted));
    out_.text("BlockStored");
    hashes(event);
    parent(event);
    tokens(event);
    out_.number(event.block_size);
    optional(event.lora_id);
    if (format_.last_field >= kMedium) text_or_nil(event.medium);
    if (salted) {
      out_.map(1);
      out_.text("cache_salt");
      out_.text(event.salt);
    }
    if (format_.last_field >= kLoraName) text_or_nil(event.lora_name);
    if (format_.last_field >= kExtraKeys) extra_keys(event);
    if (format_.last_field >= kGroup) optional(event.group);
    if (format_.last_field >= kKind) text_or_nil(event.kind);
    if (format_.last_field >= kWindow) out_.nil();
  }

  void stored_map(const KvEvent& event) {
    const bool keys = event.extra_keys && format_.last_field >= kExtraKeys;
    const bool group = event.group && format_.last_field >= kGroup;
    const bool kind = !event.kind.empty() && format_.last_field >= kKind;
    const bool medium = format_.nulls || !event.medium.empty();
    const bool lora = format_.nulls || !event.lora_name.empty();
    const bool salt = format_.salts && !event.salt.empty();
    out_.map(6U + static_cast<unsigned>(medium) + static_cast<unsigned>(lora) +
             static_cast<unsigned>(salt) + static_cast<unsigned>(keys) +
             static_cast<unsigned>(group) + static_cast<unsigned>(kind));
    out_.text("type");
    out_.text("BlockStored");
    out_.text("block_hashes");
    hashes(event);
    out_.text("parent_block_hash");
    parent(event);
    out_.text("token_ids");
    tokens(event);
    out_.text("block_size");
    out_.number(event.block_size);
    out_.text("lora_id");
    optional(event.lora_id);
    if (medium) {
      out_.text("medium");
      text_or_nil(event.medium);
    }
    if (salt) {
      out_.text("cache_salt");
      out_.text(event.salt);
    }
    if (lora) {
      out_.text("lora_name");
      text_or_nil(event.lora_name);
    }
    if (keys) {
      out_.text("extra_keys");
      extra_keys(event);
    }
    if (group) {
      out_.text("group_idx");
      optional(event.group);
    }
    if (kind) {
      out_.text("kv_cache_spec_kind");
      out_.text(event.kind);
    }
  }

  void removed_array(const KvEvent& event) {
    const bool medium = format_.last_field >= kMedium;
    const bool group = format_.last_field >= kGroup;
    out_.array(2U + static_cast<unsigned>(medium) + static_cast<unsigned>(group));
    out_.text("BlockRemoved");
    hashes(event);
    if (medium) text_or_nil(event.medium);
    if (group) optional(event.group);
  }

  void removed_map(const KvEvent& event) {
    const bool group = event.group && format_.last_field >= kGroup;
    out_.map(3U + static_cast<unsigned>(group));
    out_.text("type");
    out_.text("BlockRemoved");
    out_.text("block_hashes");
    hashes(event);
    out_.text("medium");
    text_or_nil(event.medium);
    if (group) {
      out_.text("group_idx");
      optional(event.group);
    }
  }

  void hash(const BlockHash& hash) {
    switch (format_.hashes) {
      case HashForm::Unsigned:
        return out_.number(hash_number(format_.rule, hash));
      case HashForm::Signed:
        return out_.signed_number(static_cast<std::int64_t>(hash_number(format_.rule, hash)));
      case HashForm::Bytes:
        return out_.bytes(hash);
    }
  }

  void hashes(const KvEvent& event) {
    out_.array(event.hashes.size());
    for (const BlockHash& one : event.hashes) hash(one);
  }

  void parent(const KvEvent& event) {
    if (event.parent) return hash(*event.parent);
    if (format_.root_parent_zero) return out_.number(0);
    out_.nil();
  }

  void tokens(const KvEvent& event) {
    out_.array(event.tokens.size());
    for (const TokenId token : event.tokens) out_.number(token);
  }

  void extra_keys(const KvEvent& event) {
    if (!event.extra_keys) return out_.nil();
    out_.array(event.extra_keys->size());
    for (const auto& of_block : *event.extra_keys) {
      if (of_block.empty()) {
        out_.nil();
        continue;
      }
      out_.array(of_block.size());
      for (const std::string& key : of_block) out_.text(key);
    }
  }

  void optional(const std::optional<std::uint32_t>& value) {
    if (value) return out_.number(*value);
    out_.nil();
  }

  void text_or_nil(const std::string& text) {
    if (!text.empty()) return out_.text(text);
    out_.nil();
  }

  const EventFormat& format_;
  MsgpackWriter& out_;
};

}  // namespace

EventFormat event_format(const Options& options) {
  const Version release = options.release();
  EventFormat format;
  format.block_size = options.block_size;
  switch (options.engine) {
    case Engine::Vllm:
      format.rule = options.kv.hash_pickle ? HashRule::VllmPickle : HashRule::VllmCbor;
      format.loras = true;
      format.encoding = release >= Version{0, 24, 0} ? KvEncoding::Map : KvEncoding::Array;
      format.last_field = last_vllm_field(release);
      format.keys_of_every_block = release >= Version{0, 22, 0};
      break;
    case Engine::Sglang:
      format.rule = HashRule::Sglang;
      format.hashes = HashForm::Signed;
      format.last_field = release >= Version{0, 5, 9} ? kMedium : kLoraId;
      format.salts = release >= Version{0, 5, 18};
      if (release >= kSglangMaps) {
        format.encoding = KvEncoding::Map;
        format.loras = true;
        format.nulls = false;
      }
      format.group_removals = true;
      format.host_medium = "CPU_PINNED";
      break;
    case Engine::Trtllm:
      format.rule = HashRule::TrtllmV1;
      format.hashes = HashForm::Signed;
      format.encoding = KvEncoding::Map;
      format.last_field = kLoraName;
      break;
  }
  if (options.kv.encoding) format.encoding = *options.kv.encoding;
  if (options.kv.hash_bytes) format.hashes = HashForm::Bytes;
  format.root_parent_zero = options.kv.root_parent_zero;
  format.host_hashes_only = options.kv.host_hashes_only;
  return format;
}

std::uint32_t replay_frames(const Options& options) {
  if (options.kv.replay_frames) return *options.kv.replay_frames;
  if (options.engine == Engine::Sglang) return options.release() >= kSglangMaps ? 4 : 3;
  return options.engine == Engine::Vllm && options.release() < Version{0, 26, 0} ? 3 : 4;
}

std::vector<KvEvent> events_of(const EventFormat& format, std::span<const BlockChange> changes) {
  std::vector<KvEvent> events;
  for (const BlockChange& change : changes) {
    if (const auto* stored = std::get_if<BlocksStored>(&change)) {
      // A partial block is no news for a feed of full ones.
      if (stored->tokens.size() < stored->hashes.size() * format.block_size) continue;
      events.push_back(stored_event(format, *stored));
    } else if (const auto* removed = std::get_if<BlockRemoved>(&change)) {
      add_removed(format, *removed, events);
    } else {
      events.push_back({.type = KvEvent::Type::Cleared});
    }
  }
  return events;
}

std::string encode_batch(const EventFormat& format, double time, std::span<const KvEvent> events,
                         std::uint32_t rank) {
  MsgpackWriter out;
  EventWriter writer(format, out);
  out.array(3);
  out.real(time);
  out.array(events.size());
  for (const KvEvent& event : events) writer.write(event);
  out.number(rank);
  return out.take();
}

}  // namespace baton::sim
