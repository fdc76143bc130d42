// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/routing.h"
#include "fleet/known_prompt.h"
#include "fleet/members.h"
#include "fleet/wish.h"
#include "routing/cost.h"
#include "routing/forecast.h"
#include "routing/load_ledger.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace baton::fleet {

// Whether a policy weighs what is known of a prompt.
constexpr bool weighs_prompts(model::Policy policy) {
  return policy == model::Policy::Kv || policy == model::Policy::LoadAware ||
         policy == model::Policy::Ttft;
}

// How one candidate came out.
struct Weight {
  routing::LegSize leg;
  routing::SeatFacts facts;
  std::uint64_t cached_tokens = 0;
  routing::CostTerms cost;                    // in blocks
  std::optional<routing::Forecast> forecast;  // in seconds: policy ttft, where a prompt is computed
  double total = 0;                           // the lower the better
};

// Role. Weighs candidates for one leg of a request.
// Confinement. One call of a WorkerSet.
// Invariants. Reads loads without a lock, one after the other.
class Weighing {
 public:
  Weighing(model::Role role, model::Policy policy, const config::Cost& options,
           const routing::LoadLedger& ledger, const Members& members, const Wish& wish, Time now);

  // Among whom the choice is; to be told before they are weighed.
  void compare(std::span<const std::uint32_t> eligible);
  Weight weigh(std::size_t candidate) const;
  double temperature() const { return options_.temperature; }
  // What the leg will put on that candidate.
  routing::LegLoad load_on(std::size_t candidate) const;

 private:
  bool computes() const { return wish_.part != Part::Decode; }
  std::uint32_t block_size_on(std::size_t candidate) const;
  routing::LegSize leg_on(std::size_t candidate) const;
  routing::SeatFacts facts_of(std::size_t candidate, const routing::LegSize& leg) const;
  bool forecasts() const { return policy_ == model::Policy::Ttft && computes(); }
  std::uint64_t expected_cached(std::size_t candidate, const Weight& weight) const;
  double spared_tokens(std::uint64_t cached) const;
  void note_hits();
  void note_shared(const routing::LoadLedger& ledger);

  model::Policy policy_;
  config::Cost options_;
  const Members& members_;
  const Wish& wish_;
  Time now_;
  std::uint64_t tokens_;
  bool decode_worker_;
  double least_prefill_tokens_ = 0;
  routing::PromptFacts facts_;                 // of the prompt, where it is forecast
  std::vector<const KnownPrompt::Hit*> hits_;  // by candidate; empty: nobody has anything
  std::vector<std::uint32_t> shared_;  // blocks that are active there, by candidate; likewise
};

}  // namespace baton::fleet
