// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/candidate_scorer.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace baton::scheduling {
namespace {

// Policy ttft: the cost of a running request in blocks, and of a block in seconds of waiting.
constexpr double kRequestBlocks = 8;
constexpr double kDecodeSeconds = 1e-7;

// The leg's cost options: the model's, or the request's own, less those that its part rules out.
config::Cost options_for(model::Policy policy, const config::Cost& model,
                         const WorkerRequirements& requirements) {
  config::Cost options = requirements.cost.value_or(model);
  if (policy == model::Policy::LoadAware) {
    options.overlap_score_credit = 0;
    options.assume_kv_reuse = false;
  }
  if (requirements.part == Part::Decode) {
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

CostFacts overlap_of(const KnownPrompt::Hit& hit) {
  return {.device = static_cast<double>(hit.device),
          .host = static_cast<double>(hit.host),
          .disk = static_cast<double>(hit.disk)};
}

std::uint64_t blocks_of(std::uint64_t tokens, std::uint32_t block_size) {
  return (tokens + block_size - 1) / block_size;
}

}  // namespace

CandidateScorer::CandidateScorer(model::Role role, model::Policy policy,
                                 const config::Cost& options, const LoadLedger& ledger,
                                 const Popularity& popularity, const fleet::Members& members,
                                 const WorkerRequirements& requirements, fleet::Time now,
                                 double trust)
    : policy_(policy),
      options_(options_for(policy, options, requirements)),
      popularity_(popularity),
      members_(members),
      requirements_(requirements),
      now_(now),
      trust_(trust),
      tokens_(requirements.prompt ? requirements.prompt->tokens : 0),
      decode_worker_(role == model::Role::Decode),
      usual_block_(requirements.prompt && !requirements.prompt->shapes.empty()
                       ? requirements.prompt->shapes.front().block_size
                       : fleet::Worker::kUsualBlock),
      usual_blocks_(blocks_of(tokens_, usual_block_)) {
  facts_.tokens = static_cast<double>(tokens_);
  if (!requirements_.prompt) return;
  if (counts_hits(options)) note_hits();
  if (options_.assume_kv_reuse) note_active(ledger);
  if (forecasts() && !found_.empty()) note_cached();
}

// A request's own credit of 0 removes the worth of device blocks from the formula, and no more: the
// worker need not compute them again. A model's 0 disables the look-up.
bool CandidateScorer::counts_hits(const config::Cost& of_model) const {
  if (policy_ == model::Policy::LoadAware || !computes()) return false;
  return (forecasts() ? options_ : of_model).overlap_score_credit > 0;
}

void CandidateScorer::note_hits() {
  if (requirements_.prompt->hits.empty()) return;
  found_.resize(members_.candidates.size());
  std::size_t next = 0;
  for (const KnownPrompt::Hit& hit : requirements_.prompt->hits) {
    const auto candidate = members_.find(hit.key, next);
    if (!candidate) continue;
    found_[*candidate].hit = &hit;
    next = *candidate + 1;  // hits mostly come in the order of the candidates
  }
}

void CandidateScorer::note_active(const LoadLedger& ledger) {
  std::vector<std::pair<RankKey, std::uint32_t>> active;
  for (const KnownPrompt::Shape& shape : requirements_.prompt->shapes) {
    if (!shape.chain) continue;
    ledger.shared(*shape.chain, active);
    if (active.empty()) continue;
    found_.resize(members_.candidates.size());
    std::size_t next = 0;
    for (const auto& [key, blocks] : active) {
      const auto candidate = members_.find(key, next);
      if (!candidate) continue;
      std::uint32_t& most = found_[*candidate].active;
      most = std::max(most, blocks);
      next = *candidate + 1;
    }
  }
}

// Blocks being computed somewhere will be cached there by the time this prompt's turn comes.
void CandidateScorer::note_cached() {
  cached_.resize(found_.size());
  std::uint64_t longest = 0;  // in tokens
  std::uint32_t longest_block = 0;
  for (std::size_t i = 0; i < found_.size(); ++i) {
    const auto& [hit, active] = found_[i];
    if (hit == nullptr && active == 0) continue;
    const LegSize leg = leg_on(i);
    std::uint64_t held = active;
    double cached = static_cast<double>(active) * leg.block_size;
    if (hit != nullptr) {
      held = std::max<std::uint64_t>(held, std::uint64_t{hit->device} + hit->host + hit->disk);
      const bool on_device = hit->host == 0 && hit->disk == 0;
      cached = std::max(
          cached, on_device ? static_cast<double>(hit->device) * leg.block_size
                            : static_cast<double>(cached_tokens(options_, leg, overlap_of(*hit))));
    }
    cached_[i] = std::min(cached, facts_.tokens);
    if (held * leg.block_size <= longest) continue;
    longest = held * leg.block_size;
    longest_block = leg.block_size;
  }
  for (const KnownPrompt::Shape& shape : requirements_.prompt->shapes) {
    if (shape.block_size != longest_block || !shape.chain || shape.chain->empty()) continue;
    const std::size_t blocks = std::min<std::size_t>(longest / longest_block, shape.chain->size());
    if (blocks > 0) beginning_ = (*shape.chain)[blocks - 1];
  }
}

void CandidateScorer::compare(std::span<const std::uint32_t> eligible) {
  totals_.clear();
  if (forecasts()) {
    if (cached_.empty()) return;
    facts_.best_cached = 0;
    for (const std::uint32_t candidate : eligible)
      facts_.best_cached = std::max(facts_.best_cached, cached_[candidate]);
    const double rate = beginning_ ? popularity_.per_second(*beginning_, now_) : 0;
    facts_.copy_share = 1;
    if (rate == 0 || facts_.best_cached == 0) return;
    // A rank that lacks only the last few blocks counts as a holder.
    constexpr double kNearlyAll = 0.9;
    std::size_t holders = 0;
    double seconds = 0;
    for (const std::uint32_t candidate : eligible) {
      if (cached_[candidate] < kNearlyAll * facts_.best_cached) continue;
      if (holders++ > 0) continue;  // the others count as fast as the first
      // Requests for this prefix share the floors of their steps: charging each a whole floor would
      // make a rank with slow steps look loaded, however little there is to compute.
      const PrefillSpeed speed = members_.candidates[candidate].speed(now_);
      seconds = speed.seconds_of(facts_.tokens - facts_.best_cached) +
                speed.seconds_per_step / kAheadSteps;
    }
    facts_.copy_share = copy_share(rate, seconds, static_cast<double>(holders));
    return;
  }
  if (options_.overlap_score_credit_decay == 0) return;  // the minimum is not used
  least_prefill_tokens_ = std::numeric_limits<double>::infinity();
  for (const std::uint32_t candidate : eligible) {
    least_prefill_tokens_ =
        std::min(least_prefill_tokens_, members_.candidates[candidate].load->prefill_tokens(now_));
  }
}

std::uint32_t CandidateScorer::block_size_on(std::size_t candidate) const {
  if (!found_.empty() && found_[candidate].hit != nullptr) return found_[candidate].hit->block_size;
  const std::uint32_t said = members_.candidates[candidate].block_size;
  return said != 0 ? said : usual_block_;
}

LegSize CandidateScorer::leg_on(std::size_t candidate) const {
  return {.tokens = tokens_,
          .block_size = block_size_on(candidate),
          .track_prefill = options_.track_prefill_tokens,
          .decode_worker = decode_worker_};
}

double CandidateScorer::preference_of(std::size_t candidate) const {
  if (requirements_.constraints.preferred.empty()) return 1;
  return requirements_.constraints.preference(members_.worker(candidate)->taints());
}

// With the prompt's own.
double CandidateScorer::decode_blocks_on(std::size_t candidate, std::uint32_t block_size) const {
  std::uint64_t own = block_size == usual_block_ ? usual_blocks_ : blocks_of(tokens_, block_size);
  if (!found_.empty()) own -= std::min<std::uint64_t>(own, found_[candidate].active);
  return members_.candidates[candidate].load->decode_blocks() + static_cast<double>(own);
}

CostFacts CandidateScorer::facts_of(std::size_t candidate, const LegSize& leg) const {
  const RankLoad& load = *members_.candidates[candidate].load;
  const bool has_some = !found_.empty() && found_[candidate].hit != nullptr;
  CostFacts facts = has_some ? overlap_of(*found_[candidate].hit) : CostFacts();
  facts.prefill_tokens = load.prefill_tokens(now_);
  facts.decode_blocks = decode_blocks_on(candidate, leg.block_size);
  facts.requests = load.requests();
  facts.preference = preference_of(candidate);
  return facts;
}

Forecast CandidateScorer::forecast_on(std::size_t candidate) const {
  const fleet::Members::Candidate& rank = members_.candidates[candidate];
  const auto [queue_seconds, joins_step] = rank.load->prefill_line(now_);
  return forecast(
      facts_,
      {.queue_seconds = queue_seconds + rank.load->awaited_seconds(),
       .joins_step = joins_step,
       .cached_tokens = cached_.empty() ? 0 : cached_[candidate],
       .speed = rank.speed(now_),
       .transfer_seconds =
           requirements_.part == Part::Prefill ? rank.transfer_seconds(facts_.tokens, now_) : 0,
       .preference = preference_of(candidate),
       .requests = rank.load->requests(),
       .decodes = requirements_.part == Part::Both,
       .usual = trust_ < 1 ? rank.usual_speed() : PrefillSpeed()},
      trust_);
}

std::optional<double> CandidateScorer::expected_seconds(std::size_t candidate) const {
  if (!forecasts()) return std::nullopt;
  const fleet::Members::Candidate& rank = members_.candidates[candidate];
  const auto [queue_seconds, joins_step] = rank.load->prefill_line(now_);
  const double cached = cached_.empty() ? 0 : cached_[candidate];
  const double new_tokens = std::max(1.0, facts_.tokens - cached);
  const PrefillSpeed speed = rank.speed(now_);
  return queue_seconds + (joins_step ? speed.seconds_of(new_tokens) : speed.seconds(new_tokens));
}

// Between equals the one with less to decode.
double CandidateScorer::forecast_total(const Forecast& forecast, double decode_blocks,
                                       std::int64_t requests) const {
  return forecast.total +
         kDecodeSeconds * (decode_blocks + kRequestBlocks * static_cast<double>(requests));
}

CandidateScore CandidateScorer::weigh(std::size_t candidate) const {
  CandidateScore weight{.leg = leg_on(candidate), .facts = {}, .cost = {}, .forecast = {}};
  weight.facts = facts_of(candidate, weight.leg);
  weight.cached_tokens = cached_on(candidate);
  if (forecasts()) {
    weight.forecast = forecast_on(candidate);
    weight.total =
        forecast_total(*weight.forecast, weight.facts.decode_blocks, weight.facts.requests);
    return weight;
  }
  weight.cost = cost_of(options_, weight.leg, weight.facts, least_prefill_tokens_);
  weight.total = weight.cost.total;
  return weight;
}

template <bool kForecast>
double CandidateScorer::cost_on(std::size_t candidate) const {
  if constexpr (kForecast) {
    return forecast_total(forecast_on(candidate),
                          decode_blocks_on(candidate, block_size_on(candidate)),
                          members_.candidates[candidate].load->requests());
  } else {
    const LegSize leg = leg_on(candidate);
    return cost_of(options_, leg, facts_of(candidate, leg), least_prefill_tokens_).total;
  }
}

double CandidateScorer::total_now(std::size_t candidate) const {
  return forecasts() ? cost_on<true>(candidate) : cost_on<false>(candidate);
}

std::span<const double> CandidateScorer::totals(std::span<const std::uint32_t> candidates) {
  totals_.resize(candidates.size());
  // Prefetches each candidate's load: waiting for memory would be most of the work.
  const auto each = [&](auto fetch, auto cost) {
    constexpr std::size_t kAhead = 8;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (i + kAhead < candidates.size()) fetch(*members_.candidates[candidates[i + kAhead]].load);
      totals_[i] = cost(candidates[i]);
    }
  };
  if (forecasts()) {
    each([](const RankLoad& load) { load.fetch_all(); },
         [this](std::size_t candidate) { return cost_on<true>(candidate); });
  } else {
    each([](const RankLoad& load) { load.fetch(); },
         [this](std::size_t candidate) { return cost_on<false>(candidate); });
  }
  return totals_;
}

// Tokens of the prompt that the candidate need not compute.
std::uint64_t CandidateScorer::cached_on(std::size_t candidate) const {
  if (forecasts()) return cached_.empty() ? 0 : static_cast<std::uint64_t>(cached_[candidate]);
  if (found_.empty() || found_[candidate].hit == nullptr) return 0;
  return cached_tokens(options_, leg_on(candidate), overlap_of(*found_[candidate].hit));
}

LegLoad CandidateScorer::load_on(std::size_t candidate) const {
  const LegSize leg = leg_on(candidate);
  LegLoad load{.prefill_tokens = 0,
               .prefill_time = {},
               .step_time = {},
               .chain = {},
               .blocks = blocks_of(leg.tokens, leg.block_size),
               .block_size = leg.block_size,
               .expected_output = requirements_.expected_output,
               .track_output = options_.track_output_blocks};
  if (computes() && options_.track_prefill_tokens) {
    load.prefill_tokens = leg.tokens - std::min(cached_on(candidate), leg.tokens);
    // A fully cached prompt takes time, too.
    if (forecasts()) load.prefill_tokens = std::max<std::uint64_t>(1, load.prefill_tokens);
    if (forecasts() || options_.prefill_load_model == config::PrefillLoadModel::Measured) {
      const PrefillSpeed speed = members_.candidates[candidate].speed(now_);
      const auto time = [](double seconds) {
        return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
      };
      load.prefill_time = time(speed.seconds_of(static_cast<double>(load.prefill_tokens)));
      load.step_time = time(speed.seconds_per_step);
    }
  }
  if (options_.assume_kv_reuse && requirements_.prompt) {
    for (const KnownPrompt::Shape& shape : requirements_.prompt->shapes) {
      if (shape.block_size == leg.block_size) load.chain = shape.chain;
    }
  }
  return load;
}

}  // namespace baton::scheduling
