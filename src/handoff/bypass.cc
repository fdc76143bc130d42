// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Conditional disaggregation: when a decode worker computes a prompt itself.
#include "handoff/selection.h"

#include <algorithm>
#include <utility>

namespace baton::handoff {
namespace {

using config::Bypass;
using config::ConditionalPrefill;
using model::Role;

bool little_is_new(const ConditionalPrefill& rule, std::uint64_t prompt, std::uint64_t cached) {
  const std::uint64_t fresh = prompt - std::min(cached, prompt);
  const double share =
      static_cast<double>(fresh) / static_cast<double>(std::max<std::uint64_t>(1, prompt));
  return fresh < rule.max_new_tokens && share < rule.max_new_share;
}

}  // namespace

std::string_view to_string(Bypassed decision) {
  switch (decision) {
    case Bypassed::DeclinedByPolicy:
      return "bypass_declined_by_policy";
    case Bypassed::AllowedGateDisabled:
      return "bypass_allowed_decode_gate_disabled";
    case Bypassed::DeniedBusyUnknown:
      return "bypass_denied_decode_busy_unknown";
    case Bypassed::DeniedBusy:
      return "bypass_denied_decode_busy";
    case Bypassed::AllowedNotBusy:
      break;
  }
  return "bypass_allowed_decode_not_busy";
}

bool Selection::prefill_is_busy(double threshold) {
  const auto choice = look(Role::Prefill, prefill_wish());
  if (!choice) return choice.error().code() == Errc::WorkersBusy;
  const fleet::Choice::Candidate& would = choice->candidates[choice->picked];
  const double tokens =
      would.worker->load(would.rank.value_or(0))->prefill_tokens(fleet::Clock::now());
  return fleet::BusyLine{.tokens = {}, .share = threshold, .late = false}.crossed_by(*would.worker,
                                                                                     tokens);
}

std::optional<fleet::Booking> Selection::bypass(const Counters& counters) {
  const ConditionalPrefill& rule = job_.model->routing().conditional;
  const bool possible = policy_.disaggregate && policy_.decode_may_prefill && !policy_.required &&
                        alone_role_ == Role::Decode && !job_.hints->prefill &&
                        fleet::weighs_prompts(pool_->workers(Role::Decode).policy());
  if (rule.policy == Bypass::Never || !possible) return std::nullopt;
  look_at_prompt();
  if (known_->shapes.empty()) return std::nullopt;  // nobody knows the prompt's tokens
  const bool by_load = rule.policy == Bypass::PrefillLoad || rule.policy == Bypass::IslOrLoad;
  const bool by_length = rule.policy == Bypass::IslBounding || rule.policy == Bypass::IslOrLoad;
  const bool busy = by_load && prefill_is_busy(rule.prefill_busy_threshold.value_or(0));

  std::optional<Bypassed> decision;
  fleet::Wish wish = alone_wish();
  wish.accept = [&](const fleet::Worker& worker, const fleet::Weight& weight) {
    if (!busy && !(by_length && little_is_new(rule, known_->tokens, weight.cached_tokens))) {
      decision = Bypassed::DeclinedByPolicy;
    } else if (!rule.decode_busy_threshold) {
      decision = Bypassed::AllowedGateDisabled;
    } else if (!worker.kv_blocks()) {
      decision = Bypassed::DeniedBusyUnknown;
    } else {
      const double most = *rule.decode_busy_threshold * static_cast<double>(*worker.kv_blocks());
      decision =
          weight.facts.decode_blocks > most ? Bypassed::DeniedBusy : Bypassed::AllowedNotBusy;
    }
    return decision == Bypassed::AllowedGateDisabled || decision == Bypassed::AllowedNotBusy;
  };
  auto booking = book(Role::Decode, std::move(wish), decode_lease_);
  if (decision) {
    counters.bypasses[static_cast<std::size_t>(*decision)]->add();
    page_.bypass(to_string(*decision));
  }
  if (!booking) return std::nullopt;
  return std::move(*booking);
}

}  // namespace baton::handoff
