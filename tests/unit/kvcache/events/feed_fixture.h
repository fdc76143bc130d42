// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/events/applier.h"
#include "kvcache/index/index.h"
#include "support/msgpack_encoder.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::test {

using namespace kvcache;

using Tokens = std::vector<TokenId>;
using Overlap = std::array<std::uint32_t, kTiers>;

inline Tokens counting(std::uint32_t first, std::uint32_t count) {
  Tokens tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// One feed and an index of its own.
class FeedFixture : public testing::Test {
 protected:
  Applier& feed(std::optional<std::uint32_t> block_size = std::nullopt) {
    if (!applier_) applier_.emplace(index_, slot_, block_size);
    return *applier_;
  }
  bool apply(std::string_view payload) {
    return feed().apply_batch(std::as_bytes(std::span(payload))).has_value();
  }
  // A batch of these events.
  bool apply(std::initializer_list<baton::test::MsgpackEncoder> events) {
    baton::test::MsgpackEncoder batch;
    batch.array(3).number(1.5).array(events.size());
    for (const auto& event : events) batch.raw(event.encoded());
    batch.unsigned_integer(0);
    return apply(batch.encoded());
  }

  // How many blocks of a prompt the feed's worker has, per tier.
  Overlap overlap(const Tokens& prompt, BlockShape shape, Namespace name_space = {}) const {
    return overlap_of(sequence_hashes(prompt, shape, seed_of(name_space)));
  }
  Overlap overlap_of(const std::vector<SequenceHash>& hashes) const {
    std::vector<Match> matches;
    index_.match(hashes, matches);
    if (matches.empty()) return {};
    EXPECT_EQ(matches.size(), 1U);
    return matches.front().blocks;
  }
  // In whichever tier.
  std::uint32_t held(const Tokens& prompt, std::uint32_t size, Namespace name_space = {}) const {
    return overlap(prompt, {.size = size}, name_space).back();
  }
  std::size_t blocks() const {
    std::size_t count = 0;
    index_.visit(slot_, [&](const Index::Held&) { ++count; });
    return count;
  }
  std::uint64_t skipped(Skipped reason) {
    return feed().tally().skipped[static_cast<std::size_t>(reason)];
  }
  std::uint64_t skipped() {
    const auto& counts = feed().tally().skipped;
    return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  }

  Index index_{{}};
  Slot slot_ = index_.join({.worker = {1}, .rank = 0});
  std::optional<Applier> applier_;
};

// An event's fields, each of them absent at first, as newer engines send it.
struct StoredEvent {
  std::vector<std::uint64_t> hashes;
  std::optional<std::uint64_t> parent = {};
  Tokens tokens = {};
  std::uint64_t block_size = 0;
  std::optional<std::uint64_t> lora_id = {};
  std::string_view medium = {};
  std::string_view lora_name = {};
  std::string_view cache_salt = {};
  std::optional<std::uint64_t> group = {};
  std::string_view kind = {};
  std::string_view locality = {};
  std::string_view ownership = {};
  std::string extra_keys = {};  // encoded
  bool pairs = false;           // the tokens are sent as pairs of neighbours

  operator baton::test::MsgpackEncoder() const {  // NOLINT: reads like a literal in tests
    baton::test::MsgpackEncoder event;
    std::size_t fields = 5;
    const auto field = [&](bool is_set, std::string_view name, auto&& write) {
      if (!is_set) return;
      ++fields;
      event.text(name);
      write();
    };
    const auto text = [&](std::string_view name, std::string_view value) {
      field(!value.empty(), name, [&] { event.text(value); });
    };
    const auto number = [&](std::string_view name, std::optional<std::uint64_t> value) {
      field(value.has_value(), name, [&] { event.unsigned_integer(*value); });
    };
    event.text("type").text("BlockStored").text("block_hashes").array(hashes.size());
    for (const std::uint64_t hash : hashes) event.unsigned_integer(hash);
    event.text("parent_block_hash");
    parent ? event.unsigned_integer(*parent) : event.nil();
    event.text("token_ids");
    write_tokens(event);
    event.text("block_size").unsigned_integer(block_size);
    number("lora_id", lora_id);
    text("medium", medium);
    text("lora_name", lora_name);
    text("cache_salt", cache_salt);
    number("group_idx", group);
    text("kv_cache_spec_kind", kind);
    text("locality", locality);
    text("ownership", ownership);
    field(!extra_keys.empty(), "extra_keys", [&] { event.raw(extra_keys); });
    baton::test::MsgpackEncoder whole;
    return whole.map(fields).raw(event.encoded());
  }

 private:
  void write_tokens(baton::test::MsgpackEncoder& event) const {
    if (!pairs) {
      event.array(tokens.size());
      for (const auto token : tokens) event.unsigned_integer(token);
      return;
    }
    event.array(tokens.size() - 1);
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
      event.array(2).unsigned_integer(tokens[i]).unsigned_integer(tokens[i + 1]);
  }
};

struct RemovedEvent {
  std::vector<std::uint64_t> hashes;
  std::string_view medium = {};
  std::optional<std::uint64_t> group = {};
  std::string_view locality = {};

  operator baton::test::MsgpackEncoder() const {  // NOLINT: reads like a literal in tests
    baton::test::MsgpackEncoder event;
    event.array(5).text("BlockRemoved").array(hashes.size());
    for (const std::uint64_t hash : hashes) event.unsigned_integer(hash);
    medium.empty() ? event.nil() : event.text(medium);
    group ? event.unsigned_integer(*group) : event.nil();
    locality.empty() ? event.nil() : event.text(locality);
    return event;
  }
};

inline baton::test::MsgpackEncoder cleared() {
  baton::test::MsgpackEncoder event;
  return event.array(1).text("AllBlocksCleared");
}

}  // namespace baton::test
