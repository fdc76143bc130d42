// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/routing.h"
#include "fleet/members.h"
#include "scheduling/policy/cost.h"
#include "scheduling/policy/forecast.h"
#include "scheduling/policy/known_prompt.h"
#include "scheduling/policy/load_ledger.h"
#include "scheduling/policy/popularity.h"
#include "scheduling/worker_requirements.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace baton::scheduling {

// Whether a policy uses what is known of a prompt.
constexpr bool scores_prompts(model::Policy policy) {
  return policy == model::Policy::Kv || policy == model::Policy::LoadAware ||
         policy == model::Policy::Ttft;
}

// How one candidate came out.
struct CandidateScore {
  LegSize leg;
  CostFacts facts;
  std::uint64_t cached_tokens = 0;
  CostTerms cost;                    // in blocks
  std::optional<Forecast> forecast;  // in seconds: policy ttft, where a prompt is computed
  double total = 0;                  // the lower the better
};

// Role. Scores candidates for one leg of a request.
// Confinement. One call of a WorkerSet.
// Invariants. Reads loads without a lock, one after the other.
// Size. Many members, as one call scores thousands of candidates: what does not depend on the
//   candidate is computed once. The formulas are functions of policy/.
class CandidateScorer {
 public:
  CandidateScorer(model::Role role, model::Policy policy, const config::Cost& options,
                  const LoadLedger& ledger, const Popularity& popularity,
                  const fleet::Members& members, const WorkerRequirements& requirements,
                  fleet::Time now, double trust = 1);

  // Sets the candidates to compare; must precede scoring.
  void compare(std::span<const std::uint32_t> eligible);
  CandidateScore weigh(std::size_t candidate) const;
  // Equals weigh().total, at lower cost.
  double total(std::size_t candidate) const {
    return known_totals().empty() ? total_now(candidate) : totals_[candidate];
  }
  // total() of each of them, all at once: for thousands. Valid until the next comparison.
  std::span<const double> totals(std::span<const std::uint32_t> candidates);
  // total() by candidate, if all are known already; else empty.
  std::span<const double> known_totals() const {
    if (totals_.size() != members_.candidates.size()) return {};
    return totals_;
  }
  double temperature() const { return options_.temperature; }
  // How far forecasts are trusted, see ForecastError.
  double trust() const { return trust_; }
  // Seconds until the prompt is computed on that candidate, if it is booked there now; nothing
  // without a forecast.
  std::optional<double> expected_seconds(std::size_t candidate) const;
  // The load that the leg will put on that candidate.
  LegLoad load_on(std::size_t candidate) const;
  // The longest prefix of the prompt that any rank holds or computes, as a Popularity knows it; set
  // only if the policy uses it. nullopt: no rank holds any of it.
  std::optional<std::uint64_t> beginning() const { return beginning_; }

 private:
  // The part of the prompt that a candidate holds.
  struct Found {
    const KnownPrompt::Hit* hit = nullptr;
    std::uint32_t active = 0;  // blocks of prompts that run there
  };

  bool computes() const { return requirements_.part != Part::Decode; }
  bool forecasts() const { return policy_ == model::Policy::Ttft && computes(); }
  double total_now(std::size_t candidate) const;
  // These are done for each of thousands; calls, and results passed through memory, would be a
  // large part of it.
  template <bool kForecast>
  [[gnu::always_inline]] double cost_on(std::size_t candidate) const;
  [[gnu::always_inline]] std::uint32_t block_size_on(std::size_t candidate) const;
  [[gnu::always_inline]] LegSize leg_on(std::size_t candidate) const;
  bool counts_hits(const config::Cost& of_model) const;
  [[gnu::always_inline]] CostFacts facts_of(std::size_t candidate, const LegSize& leg) const;
  [[gnu::always_inline]] double preference_of(std::size_t candidate) const;
  [[gnu::always_inline]] double decode_blocks_on(std::size_t candidate,
                                                 std::uint32_t block_size) const;
  [[gnu::always_inline]] Forecast forecast_on(std::size_t candidate) const;
  [[gnu::always_inline]] double forecast_total(const Forecast& forecast, double decode_blocks,
                                               std::int64_t requests) const;
  std::uint64_t cached_on(std::size_t candidate) const;
  void note_hits();
  void note_active(const LoadLedger& ledger);
  void note_cached();

  model::Policy policy_;
  config::Cost options_;
  const Popularity& popularity_;
  const fleet::Members& members_;
  const WorkerRequirements& requirements_;
  fleet::Time now_;
  double trust_;
  std::uint64_t tokens_;
  bool decode_worker_;
  std::uint32_t usual_block_;   // for workers that do not report one
  std::uint64_t usual_blocks_;  // of the prompt, there
  double least_prefill_tokens_ = 0;
  PromptFacts facts_;         // of the prompt, where it is forecast
  std::vector<Found> found_;  // by candidate; empty: no rank holds any of it
  // Tokens of the prompt that need not be computed when its turn comes, by candidate; with a
  // forecast only. Empty: none anywhere.
  std::vector<double> cached_;
  std::optional<std::uint64_t> beginning_;
  std::vector<double> totals_;  // of the compared candidates
};

}  // namespace baton::scheduling
