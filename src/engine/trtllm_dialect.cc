// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/trtllm_dialect.h"

#include "engine/completion_json.h"
#include "engine/dialect_fields.h"
#include "wire/json_array.h"

#include <fmt/format.h>

namespace baton::engine {

bool TrtllmDialect::can_hand_off(const ClientCall& call) const {
  // One context request stands for one sequence.
  return !has_prompt_list(call) && call.body.find_integer("n").value_or(1) == 1;
}

wire::SplicedBody TrtllmDialect::prefill_body(const ClientCall& call,
                                              const HandoffTicket& ticket) const {
  wire::JsonSplice splice = leg_body(call);
  splice.set("stream", "false");
  splice.remove("stream_options");
  splice.set(
      "disaggregated_params",
      fmt::format(R"({{"request_type":"context_only","disagg_request_id":{},"schedule_style":0}})",
                  ticket.disagg_request_id));
  return splice.build();
}

wire::SplicedBody TrtllmDialect::decode_body(const ClientCall& call, const HandoffTicket&,
                                             const PrefillOutcome& outcome,
                                             DecodePurpose purpose) const {
  wire::JsonSplice splice = leg_body(call);
  if (purpose == DecodePurpose::Release) shape_as_single_token(splice, call.body);
  splice.set("disaggregated_params", outcome.handoff);
  if (!outcome.prompt_token_ids.empty()) {
    const bool chat = call.api == Api::Chat;
    splice.set(chat ? "prompt_token_ids" : "prompt", outcome.prompt_token_ids);
  }
  return splice.build();
}

Result<PrefillOutcome> TrtllmDialect::read_prefill_answer(const std::string& json) const {
  const auto answer = wire::JsonObject::parse(json);
  if (!answer) return fail(Errc::EngineProtocol, "the context answer is not a JSON object");
  const auto finish = finish_reason_of(*answer);
  if (!finish) return fail(finish.error());

  const auto choice = wire::JsonObject::within(*wire::first_element(*answer->find("choices")));
  if (!choice) return fail(Errc::EngineProtocol, "the context answer's choice is not an object");
  PrefillOutcome outcome;
  if (means_failure(*finish))
    return fail(Errc::EngineFailed, "the context worker gave the request up");
  if (*finish != "length" && *finish != "not_finished") {
    const std::string plain_choice =
        wire::JsonSplice(*choice).remove("disaggregated_params").build().joined();
    outcome.final_answer = wire::JsonSplice(*answer)
                               .set("choices", "[" + plain_choice + "]")
                               .remove("prompt_token_ids")
                               .build()
                               .joined();
    return outcome;
  }
  const auto params = choice->find_object("disaggregated_params");
  if (!params) {
    return fail(Errc::EngineProtocol, "the context worker's answer has no disaggregated_params");
  }
  wire::JsonSplice handoff(*params);
  handoff.set("request_type", R"("generation_only")");
  if (const auto usage = answer->find("usage")) handoff.set("ctx_usage", *usage);
  outcome.handoff = handoff.build().joined();
  if (const auto ids = answer->find("prompt_token_ids"); ids && *ids != "null") {
    outcome.prompt_token_ids = *ids;
  }
  return outcome;
}

}  // namespace baton::engine
