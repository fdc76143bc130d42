// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Conditional disaggregation: when a decode worker computes a prompt itself.
#include "scheduling/prefill_bypass.h"

#include "scheduling/worker_selector.h"

#include <algorithm>
#include <utility>

namespace baton::scheduling {
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

bool allows(Bypassed decision) {
  return decision == Bypassed::AllowedGateDisabled || decision == Bypassed::AllowedNotBusy;
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

bool WorkerSelector::may_bypass() {
  const ConditionalPrefill& rule = request_.model->routing().conditional;
  const bool possible = permissions_.disaggregate && permissions_.decode_may_prefill &&
                        !permissions_.required && alone_role_ == Role::Decode &&
                        !request_.hints->prefill &&
                        scores_prompts(pool_->workers(Role::Decode).policy());
  if (rule.policy == Bypass::Never || !possible) return false;
  look_at_prompt();
  return !known_->shapes.empty();  // the prompt's tokens are known
}

bool WorkerSelector::prefill_is_busy() {
  const ConditionalPrefill& rule = request_.model->routing().conditional;
  if (rule.policy != Bypass::PrefillLoad && rule.policy != Bypass::IslOrLoad) return false;
  const auto choice = look(Role::Prefill, prefill_requirements());
  if (!choice) return choice.error().code() == Errc::WorkersBusy;
  const Choice::Candidate& would = choice->candidates[choice->picked];
  const double tokens =
      would.worker->load(would.rank.value_or(0))->prefill_tokens(fleet::Clock::now());
  const BusyThreshold line{
      .tokens = {}, .share = rule.prefill_busy_threshold.value_or(0), .late = false};
  return line.crossed_by(*would.worker, tokens);
}

Bypassed WorkerSelector::decide_bypass(bool prefill_busy, const fleet::Worker& worker,
                                       const CandidateScore& weight) const {
  const ConditionalPrefill& rule = request_.model->routing().conditional;
  const bool by_length = rule.policy == Bypass::IslBounding || rule.policy == Bypass::IslOrLoad;
  if (!prefill_busy && !(by_length && little_is_new(rule, known_->tokens, weight.cached_tokens)))
    return Bypassed::DeclinedByPolicy;
  if (!rule.decode_busy_threshold) return Bypassed::AllowedGateDisabled;
  if (!worker.kv_blocks()) return Bypassed::DeniedBusyUnknown;
  const double most = *rule.decode_busy_threshold * static_cast<double>(*worker.kv_blocks());
  return weight.facts.decode_blocks > most ? Bypassed::DeniedBusy : Bypassed::AllowedNotBusy;
}

std::optional<Choice> WorkerSelector::preview_bypass(std::optional<Bypassed>& decision) {
  if (!may_bypass()) return std::nullopt;
  const bool busy = prefill_is_busy();
  auto choice = look(Role::Decode, alone_requirements());
  if (!choice) return std::nullopt;
  const Choice::Candidate& would = choice->candidates[choice->picked];
  decision = decide_bypass(busy, *would.worker, *would.weight);
  if (!allows(*decision)) return std::nullopt;
  return std::move(*choice);
}

std::optional<fleet::Booking> WorkerSelector::bypass(const BypassCounters& counters) {
  if (!may_bypass()) return std::nullopt;
  const bool busy = prefill_is_busy();
  std::optional<Bypassed> decision;
  WorkerRequirements requirements = alone_requirements();
  requirements.accept = [&](const fleet::Worker& worker, const CandidateScore& weight) {
    decision = decide_bypass(busy, worker, weight);
    return allows(*decision);
  };
  auto booking = book(Role::Decode, std::move(requirements), decode_lease_);
  if (decision) {
    counters[static_cast<std::size_t>(*decision)]->add();
    page_.bypass(to_string(*decision));
  }
  if (!booking) return std::nullopt;
  return std::move(*booking);
}

}  // namespace baton::scheduling
