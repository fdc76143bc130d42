// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/weighing.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace baton::fleet {
namespace {

constexpr std::uint32_t kUsualBlock = 16;  // tokens, where nobody says
// Policy ttft: what a request that runs weighs beside its blocks, and a block in seconds of waiting.
constexpr double kRequestBlocks = 8;
constexpr double kDecodeSeconds = 1e-7;

// What the leg is weighed by: the model's options, or the request's own, and what its part rules out.
config::Cost options_for(model::Policy policy, const config::Cost& model, const Wish& wish) {
  config::Cost options = wish.cost.value_or(model);
  if (policy == model::Policy::LoadAware) {
    options.overlap_score_credit = 0;
    options.assume_kv_reuse = false;
  }
  if (wish.part == Part::Decode) {
    // Its blocks come from the prefill worker: nothing is computed, and nothing is found there.
    options.track_prefill_tokens = false;
    options.assume_kv_reuse = false;
    options.overlap_score_credit = 0;
    // Many short answers are as much to do as a few long ones.
    if (policy == model::Policy::Ttft && options.decode_active_request_weight == 0)
      options.decode_active_request_weight = kRequestBlocks;
  }
  return options;
}

std::uint64_t blocks_of(std::uint64_t tokens, std::uint32_t block_size) {
  return (tokens + block_size - 1) / block_size;
}

}  // namespace

Weighing::Weighing(model::Role role, model::Policy policy, const config::Cost& options,
                   const routing::LoadLedger& ledger, const Members& members, const Wish& wish,
                   Time now)
    : policy_(policy),
      options_(options_for(policy, options, wish)),
      members_(members),
      wish_(wish),
      now_(now),
      tokens_(wish.prompt ? wish.prompt->tokens : 0),
      decode_worker_(role == model::Role::Decode) {
  if (!wish_.prompt) return;
  if (options_.overlap_score_credit > 0 && policy_ != model::Policy::LoadAware) note_hits();
  if (options_.assume_kv_reuse) note_shared(ledger);
}

void Weighing::note_hits() {
  if (wish_.prompt->hits.empty()) return;
  hits_.assign(members_.candidates.size(), nullptr);
  for (const KnownPrompt::Hit& hit : wish_.prompt->hits) {
    if (const auto candidate = members_.find(hit.seat)) hits_[*candidate] = &hit;
  }
}

void Weighing::note_shared(const routing::LoadLedger& ledger) {
  std::vector<std::pair<routing::SeatKey, std::uint32_t>> active;
  for (const KnownPrompt::Shape& shape : wish_.prompt->shapes) {
    if (!shape.chain) continue;
    ledger.shared(*shape.chain, active);
    if (active.empty()) continue;
    shared_.resize(members_.candidates.size());
    for (const auto& [seat, blocks] : active) {
      if (const auto candidate = members_.find(seat))
        shared_[*candidate] = std::max(shared_[*candidate], blocks);
    }
  }
}

void Weighing::compare(std::span<const std::uint32_t> eligible) {
  if (forecasts()) {
    facts_ = {.tokens = static_cast<double>(tokens_), .best_cached = 0, .in_demand = 0};
    if (hits_.empty() && shared_.empty()) return;
    for (const std::uint32_t candidate : eligible) {
      Weight weight{.leg = leg_on(candidate), .facts = {}, .cost = {}, .forecast = {}};
      weight.facts = facts_of(candidate, weight.leg);
      weight.cached_tokens = routing::cached_tokens(options_, weight.leg, weight.facts);
      facts_.best_cached =
          std::max(facts_.best_cached, static_cast<double>(expected_cached(candidate, weight)));
      if (shared_.empty() || shared_[candidate] == 0) continue;
      facts_.in_demand =
          std::max(facts_.in_demand,
                   static_cast<double>(std::uint64_t{shared_[candidate]} * weight.leg.block_size));
    }
    return;
  }
  if (options_.overlap_score_credit_decay == 0) return;  // nobody asks for the least
  least_prefill_tokens_ = std::numeric_limits<double>::infinity();
  for (const std::uint32_t candidate : eligible) {
    least_prefill_tokens_ =
        std::min(least_prefill_tokens_, members_.candidates[candidate].load->prefill_tokens(now_));
  }
}

std::uint32_t Weighing::block_size_on(std::size_t candidate) const {
  if (!hits_.empty() && hits_[candidate] != nullptr) return hits_[candidate]->block_size;
  if (const auto said = members_.candidates[candidate].block_size; said != 0) return said;
  if (wish_.prompt && !wish_.prompt->shapes.empty()) return wish_.prompt->shapes.front().block_size;
  return kUsualBlock;
}

routing::LegSize Weighing::leg_on(std::size_t candidate) const {
  return {.tokens = tokens_,
          .block_size = block_size_on(candidate),
          .track_prefill = options_.track_prefill_tokens,
          .decode_worker = decode_worker_};
}

routing::SeatFacts Weighing::facts_of(std::size_t candidate, const routing::LegSize& leg) const {
  const routing::SeatLoad& load = *members_.candidates[candidate].load;
  routing::SeatFacts facts{
      .prefill_tokens = load.prefill_tokens(now_),
      .decode_blocks = load.decode_blocks(),
      .requests = load.requests(),
      .preference = wish_.constraints.preferred.empty()
                        ? 1
                        : wish_.constraints.preference(members_.worker(candidate)->taints())};
  std::uint64_t own = blocks_of(leg.tokens, leg.block_size);
  if (!shared_.empty()) own -= std::min<std::uint64_t>(own, shared_[candidate]);
  facts.decode_blocks += static_cast<double>(own);
  if (hits_.empty() || hits_[candidate] == nullptr) return facts;
  facts.device = hits_[candidate]->device;
  facts.host = hits_[candidate]->host;
  facts.disk = hits_[candidate]->disk;
  return facts;
}

Weight Weighing::weigh(std::size_t candidate) const {
  Weight weight{.leg = leg_on(candidate), .facts = {}, .cost = {}, .forecast = {}};
  weight.facts = facts_of(candidate, weight.leg);
  weight.cached_tokens = routing::cached_tokens(options_, weight.leg, weight.facts);
  if (forecasts()) {
    const auto& [worker, rank, block_size, load] = members_.candidates[candidate];
    weight.cached_tokens = expected_cached(candidate, weight);
    weight.forecast = routing::forecast(
        facts_, {.queue_seconds = load->prefill_seconds(now_) + load->awaited_seconds(),
                 .cached_tokens = static_cast<double>(weight.cached_tokens) +
                                  spared_tokens(weight.cached_tokens),
                 .speed = members_.workers[worker]->pace(rank).speed(),
                 .transfer_seconds = 0,
                 .preference = weight.facts.preference});
    // Between equals the one with less to decode.
    weight.total = weight.forecast->total +
                   kDecodeSeconds * (weight.facts.decode_blocks +
                                     kRequestBlocks * static_cast<double>(weight.facts.requests));
    return weight;
  }
  weight.cost = routing::cost_of(options_, weight.leg, weight.facts, least_prefill_tokens_);
  weight.total = weight.cost.total;
  return weight;
}

// What is on its way there will be cached by the time this prompt's turn comes.
std::uint64_t Weighing::expected_cached(std::size_t candidate, const Weight& weight) const {
  if (shared_.empty()) return weight.cached_tokens;
  const std::uint64_t coming = std::uint64_t{shared_[candidate]} * weight.leg.block_size;
  return std::max(weight.cached_tokens, std::min(coming, tokens_));
}

// What another rank has or is computing is rather waited for than computed again: a copy must save a
// little more than it costs.
double Weighing::spared_tokens(std::uint64_t cached) const {
  constexpr double kPrice = 1.05;
  const double common = std::min(facts_.in_demand, facts_.best_cached);
  return (1 - kPrice) * std::max(0.0, common - static_cast<double>(cached));
}

routing::LegLoad Weighing::load_on(std::size_t candidate) const {
  const routing::LegSize leg = leg_on(candidate);
  routing::LegLoad load{.prefill_tokens = 0,
                        .prefill_time = {},
                        .chain = {},
                        .blocks = blocks_of(leg.tokens, leg.block_size),
                        .block_size = leg.block_size,
                        .expected_output = {},
                        .track_output = options_.track_output_blocks};
  if (computes() && options_.track_prefill_tokens) {
    const std::uint64_t cached = weigh(candidate).cached_tokens;
    load.prefill_tokens = leg.tokens - std::min(cached, leg.tokens);
    if (forecasts()) {
      // Also what is all cached takes its time.
      load.prefill_tokens = std::max<std::uint64_t>(1, load.prefill_tokens);
      const auto& [worker, rank, block_size, unused] = members_.candidates[candidate];
      const double seconds = members_.workers[worker]->pace(rank).speed().seconds(
          static_cast<double>(load.prefill_tokens));
      load.prefill_time = std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
    }
  }
  if (options_.assume_kv_reuse && wish_.prompt) {
    for (const KnownPrompt::Shape& shape : wish_.prompt->shapes) {
      if (shape.block_size == leg.block_size) load.chain = shape.chain;
    }
  }
  return load;
}

}  // namespace baton::fleet
