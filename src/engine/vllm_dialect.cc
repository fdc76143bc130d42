// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/vllm_dialect.h"

#include "engine/completion_json.h"
#include "engine/dialect_fields.h"

namespace baton::engine {

bool VllmDialect::can_hand_off(const ClientCall& call) const {
  // The answer to a list of prompts carries one kv_transfer_params for all of them.
  return !has_prompt_list(call);
}

wire::SplicedBody VllmDialect::prefill_body(const ClientCall& call, const HandoffTicket&) const {
  wire::JsonSplice splice = leg_body(call);
  shape_as_single_token(splice, call.body);
  splice.set("kv_transfer_params",
             R"({"do_remote_decode":true,"do_remote_prefill":false,"remote_engine_id":null,)"
             R"("remote_block_ids":null,"remote_host":null,"remote_port":null})");
  return splice.build();
}

wire::SplicedBody VllmDialect::decode_body(const ClientCall& call, const HandoffTicket&,
                                           const PrefillOutcome& outcome,
                                           DecodePurpose purpose) const {
  wire::JsonSplice splice = leg_body(call);
  if (purpose == DecodePurpose::Release) shape_as_single_token(splice, call.body);
  if (!outcome.handoff.empty()) splice.set("kv_transfer_params", outcome.handoff);
  return splice.build();
}

Result<PrefillOutcome> VllmDialect::read_prefill_answer(const std::string& json) const {
  const auto answer = wire::JsonObject::parse(json);
  if (!answer) return fail(Errc::EngineProtocol, "the prefill answer is not a JSON object");
  const auto finish = finish_reason_of(*answer);
  if (!finish) return fail(finish.error());

  PrefillOutcome outcome;
  // Nothing was kept of an aborted prefill: the decode worker computes the prompt itself.
  if (means_failure(*finish)) return outcome;
  if (*finish != "length") {
    outcome.final_answer = wire::JsonSplice(*answer).remove("kv_transfer_params").build().joined();
    return outcome;
  }
  const auto params = answer->find("kv_transfer_params");
  if (params && *params != "null") outcome.handoff = *params;
  return outcome;
}

}  // namespace baton::engine
