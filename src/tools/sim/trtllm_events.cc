// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/trtllm_events.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace baton::sim {
namespace {

using nlohmann::ordered_json;

// Default priority of a block.
constexpr int kPriority = 35;

std::uint64_t number(const BlockHash& hash) { return hash_number(HashRule::TrtllmV1, hash); }

}  // namespace

TrtllmEvents::TrtllmEvents(const Options& options, std::uint32_t rank)
    : options_(options), rank_(rank) {
  restart();
}

void TrtllmEvents::add(std::span<const BlockChange> changes, unsigned copies) {
  for (const BlockChange& change : changes) {
    if (const auto* blocks = std::get_if<BlocksStored>(&change)) {
      add_event(stored(*blocks), copies);
    } else if (const auto* removed = std::get_if<BlockRemoved>(&change)) {
      add_event({{"type", "removed"}, {"block_hashes", {number(removed->hash)}}}, copies);
    }
  }
}

void TrtllmEvents::drain(ordered_json& out) {
  for (ordered_json& event : kept_) out.push_back(std::move(event));
  kept_.clear();
}

void TrtllmEvents::restart() {
  next_id_ = 0;
  kept_.clear();
  add_event({{"type", "created"},
             {"num_blocks_per_cache_level", {options_.blocks, options_.kv.host_blocks}}},
            1);
}

void TrtllmEvents::add_event(ordered_json data, unsigned copies) {
  ordered_json event{
      {"event_id", next_id_++}, {"data", std::move(data)}, {"window_size", options_.max_model_len}};
  if (options_.dp_size > 1) event["attention_dp_rank"] = rank_;
  for (; copies > 0; --copies) {
    if (kept_.size() == *options_.kv.buffer) kept_.pop_front();
    kept_.push_back(event);
  }
}

ordered_json TrtllmEvents::stored(const BlocksStored& change) const {
  ordered_json blocks = ordered_json::array();
  auto token = change.tokens.begin();
  for (const BlockHash& hash : change.hashes) {
    const auto end =
        token + std::min<std::ptrdiff_t>(options_.block_size, change.tokens.end() - token);
    ordered_json tokens = ordered_json::array();
    for (; token != end; ++token) {
      tokens.push_back({{"type", "unique_token"}, {"token_id", *token}, {"token_extra_id", 0}});
    }
    blocks.push_back({{"type", "stored_block"},
                      {"block_hash", number(hash)},
                      {"tokens", std::move(tokens)},
                      {"cache_level", 0},
                      {"priority", kPriority}});
  }
  return {{"type", "stored"},
          {"parent_hash", change.parent ? ordered_json(number(*change.parent)) : ordered_json()},
          {"blocks", std::move(blocks)}};
}

}  // namespace baton::sim
