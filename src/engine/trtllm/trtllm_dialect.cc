// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/trtllm/trtllm_dialect.h"

#include "engine/shared/dialect_fields.h"
#include "engine/shared/prefill_answer.h"
#include "wire/json_array.h"

#include <fmt/format.h>

namespace baton::engine {
namespace {

constexpr model::Engine kTrtllm = model::Engine::Trtllm;
// Values of `schedule_style`: the order of the legs.
constexpr int kContextFirst = 0;
constexpr int kGenerationFirst = 1;

wire::SplicedBody context_body(const ClientCall& call, const HandoffTicket& ticket, int style) {
  return prefill_leg(call, kTrtllm)
      .set("disaggregated_params",
           fmt::format(
               R"({{"request_type":"context_only","disagg_request_id":{},"schedule_style":{}}})",
               ticket.disagg_request_id, style))
      .build();
}

bool handed_over(const PrefillAnswer& answer) {
  return answer.finish_reason == "length" || answer.finish_reason == "not_finished";
}

PrefillOutcome final_outcome(const PrefillAnswer& answer) {
  const std::string choice =
      wire::JsonSplice(answer.choice).remove("disaggregated_params").build().joined();
  PrefillOutcome outcome;
  outcome.usage = usage_of(answer.completion);
  // A context worker gives the prompt's tokens unasked.
  outcome.final_answer = wire::JsonSplice(answer.completion)
                             .set("choices", "[" + choice + "]")
                             .remove("prompt_token_ids")
                             .build()
                             .joined();
  return outcome;
}

}  // namespace

bool TrtllmDialect::can_hand_off(const ClientCall& call) const {
  return !needs_one_worker(call.body);
}

wire::SplicedBody ContextFirstDialect::prefill_body(const ClientCall& call,
                                                    const HandoffTicket& ticket) const {
  return context_body(call, ticket, kContextFirst);
}

wire::SplicedBody ContextFirstDialect::decode_body(const ClientCall& call, const HandoffTicket&,
                                                   const PrefillOutcome& outcome,
                                                   DecodePurpose purpose) const {
  wire::JsonSplice splice = answer_leg(call, kTrtllm, purpose);
  if (!outcome.handoff.empty()) splice.set("disaggregated_params", outcome.handoff);
  // The context worker's ids replace whatever the leg would carry otherwise.
  if (!outcome.prompt_token_ids.empty())
    set_prompt_ids(splice, call, kTrtllm, outcome.prompt_token_ids);
  return splice.build();
}

std::string ContextFirstDialect::signed_params(const HandoffTicket&,
                                               const PrefillOutcome& outcome) const {
  return outcome.handoff;
}

Result<PrefillOutcome> ContextFirstDialect::read_prefill_answer(const std::string& json) const {
  const auto answer = parse_sound_prefill_answer(json);
  if (!answer) return fail(answer.error());
  if (means_end(answer->finish_reason)) return final_outcome(*answer);

  const auto params = answer->choice.find_object("disaggregated_params");
  if (!params) {
    return fail(Errc::NoHandoff, "the context worker's answer has no disaggregated_params");
  }
  const auto context = params->find("ctx_request_id");
  if (context ? *context == "null" : params->find_string("request_type") == "context_only") {
    return fail(Errc::NoHandoff,
                "the context worker's disaggregated_params have no ctx_request_id");
  }
  PrefillOutcome outcome;
  outcome.usage = usage_of(answer->completion);
  wire::JsonSplice handoff(*params);
  handoff.set("request_type", R"("generation_only")");
  if (const auto usage = answer->completion.find("usage")) handoff.set("ctx_usage", *usage);
  outcome.handoff = handoff.build().joined();
  if (const auto ids = answer->completion.find("prompt_token_ids"); ids && *ids != "null") {
    outcome.prompt_token_ids = *ids;
  }
  return outcome;
}

wire::SplicedBody GenerationFirstDialect::prefill_body(const ClientCall& call,
                                                       const HandoffTicket& ticket) const {
  return context_body(call, ticket, kGenerationFirst);
}

std::string GenerationFirstDialect::signed_params(const HandoffTicket& ticket,
                                                  const PrefillOutcome&) const {
  constexpr std::string_view kNothingKnown = "{}";
  auto known = wire::JsonObject::parse(ticket.peer.server_info);
  if (!known) known = wire::JsonObject::parse(kNothingKnown);
  wire::JsonSplice params(*known);
  if (const auto endpoints = known->find("ctx_info_endpoint")) {
    if (const auto first = wire::first_element(*endpoints)) params.set("ctx_info_endpoint", *first);
  }
  const std::string id = fmt::format("{}", ticket.disagg_request_id);
  params.set("request_type", R"("generation_only")")
      .set("ctx_request_id", id)
      .set("disagg_request_id", id)
      .set("schedule_style", fmt::format("{}", kGenerationFirst));
  return params.build().joined();
}

wire::SplicedBody GenerationFirstDialect::decode_body(const ClientCall& call,
                                                      const HandoffTicket& ticket,
                                                      const PrefillOutcome& outcome,
                                                      DecodePurpose purpose) const {
  return answer_leg(call, kTrtllm, purpose)
      .set("disaggregated_params", signed_params(ticket, outcome))
      .build();
}

Result<PrefillOutcome> GenerationFirstDialect::read_prefill_answer(const std::string& json) const {
  const auto answer = parse_sound_prefill_answer(json);
  if (!answer) return fail(answer.error());
  if (means_end(answer->finish_reason)) return final_outcome(*answer);
  if (!handed_over(*answer)) {
    return fail(
        Errc::EngineProtocol,
        fmt::format("the context worker ended with the finish_reason {}, which is neither an "
                    "end of an answer nor a hand-off",
                    wire::json_quote(answer->finish_reason)));
  }
  PrefillOutcome outcome;
  outcome.handoff = kNothingToHandOver;
  outcome.usage = usage_of(answer->completion);
  return outcome;
}

}  // namespace baton::engine
