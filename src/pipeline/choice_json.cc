// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/choice_json.h"

#include "wire/json_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace baton::pipeline {
namespace {

// JSON cannot express infinity.
std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

template <class Number>
std::string number(const std::optional<Number>& value) {
  return value ? number(*value) : "null";
}

std::string rank_json(std::optional<std::uint32_t> rank) {
  return rank ? fmt::format("{}", *rank) : "null";
}

std::string text_json(std::string_view text) {
  return text.empty() ? "null" : wire::json_quote(text);
}

std::string cost_json(const scheduling::CostTerms& cost) {
  return fmt::format(
      R"({{"raw_prefill_blocks":{},"decay":{},"credit":{},"prefill":{},"decode_blocks":{},"requests":{},"preference":{},"total":{}}})",
      number(cost.raw_prefill_blocks), number(cost.decay), number(cost.credit),
      number(cost.prefill), number(cost.decode_blocks), number(cost.requests),
      number(cost.preference), number(cost.total));
}

std::string forecast_json(const scheduling::Forecast& forecast) {
  return fmt::format(
      R"({{"wait":{},"compute":{},"transfer":{},"stall":{},"waste":{},"preference":{},"trust":{},"total":{}}})",
      number(forecast.wait), number(forecast.compute), number(forecast.transfer),
      number(forecast.stall), number(forecast.waste), number(forecast.preference),
      number(forecast.trust), number(forecast.total));
}

// All null for a policy that does not score prompts.
std::string weight_json(const std::optional<scheduling::CandidateScore>& weight) {
  if (!weight) {
    return R"("prefill_tokens":null,"decode_blocks":null,"block_size":null,"overlap":null,)"
           R"("cached_tokens":null,"new_tokens":null,"cost":null,"forecast":null)";
  }
  const scheduling::CostFacts& facts = weight->facts;
  const scheduling::LegSize& leg = weight->leg;
  const std::uint64_t fresh =
      leg.track_prefill ? leg.tokens - std::min(leg.tokens, weight->cached_tokens) : 0;
  return fmt::format(
      R"("prefill_tokens":{},"decode_blocks":{},"block_size":{},"overlap":{{"device":{},"host":{},"disk":{}}},"cached_tokens":{},"new_tokens":{},"cost":{},"forecast":{})",
      number(facts.prefill_tokens), number(facts.decode_blocks), leg.block_size,
      number(facts.device), number(facts.host), number(facts.disk), weight->cached_tokens, fresh,
      weight->forecast ? "null" : cost_json(weight->cost),
      weight->forecast ? forecast_json(*weight->forecast) : "null");
}

std::string candidate_json(const scheduling::Choice::Candidate& candidate) {
  return fmt::format(
      R"({{"worker":{},"dp_rank":{},"load":{},"preference":{},"score":{},"why_not":{},{}}})",
      wire::json_quote(candidate.worker->name()), rank_json(candidate.rank), candidate.load,
      number(candidate.preference), number(candidate.score), text_json(candidate.why_not),
      weight_json(candidate.weight));
}

}  // namespace

std::string choice_json(const scheduling::Choice& choice) {
  std::string candidates;
  for (const auto& candidate : choice.candidates) {
    if (!candidates.empty()) candidates += ',';
    candidates += candidate_json(candidate);
  }
  const auto& picked = choice.candidates[choice.picked];
  return fmt::format(
      R"({{"worker":{},"dp_rank":{},"policy":{},"by":{},"picked":{},"of":{},"candidates":[{}]}})",
      wire::json_quote(picked.worker->name()), rank_json(picked.rank),
      wire::json_quote(model::to_string(choice.policy)), wire::json_quote(to_string(choice.by)),
      choice.picked, choice.of, candidates);
}

}  // namespace baton::pipeline
