// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/vllm_dialect.h"

#include "engine/dialect_fields.h"
#include "engine/prefill_answer.h"

#include <fmt/format.h>

namespace baton::engine {
namespace {

constexpr model::Engine kVllm = model::Engine::Vllm;

wire::JsonSplice single_token_leg(const ClientCall& call, const std::string& params) {
  wire::JsonSplice splice = prefill_leg(call, kVllm);
  shape_as_single_token(splice, call.body);
  set_kv_transfer_params(splice, call, params);
  return splice;
}

wire::SplicedBody nixl_prefill_body(const ClientCall& call) {
  return single_token_leg(
             call, R"({"do_remote_decode":true,"do_remote_prefill":false,"remote_engine_id":null,)"
                   R"("remote_block_ids":null,"remote_host":null,"remote_port":null})")
      .build();
}

// What the answer of a prefill that was not given up means. The hand-off is what the worker wrote,
// and `otherwise` where it wrote none.
Result<PrefillOutcome> read_outcome(const PrefillAnswer& answer, std::string_view otherwise) {
  PrefillOutcome outcome;
  outcome.usage = usage_of(answer.completion);
  if (answer.finish_reason != "length") {
    outcome.final_answer =
        wire::JsonSplice(answer.completion).remove("kv_transfer_params").build().joined();
    return outcome;
  }
  const auto params = answer.completion.find("kv_transfer_params");
  if (!params || *params == "null") {
    outcome.handoff = otherwise;
    return outcome;
  }
  if (!params->starts_with('{')) {
    return fail(Errc::EngineProtocol, "the prefill answer's kv_transfer_params are not an object");
  }
  outcome.handoff = *params;
  return outcome;
}

Result<PrefillOutcome> read_together_outcome(const std::string& json) {
  const auto answer = parse_sound_prefill_answer(json);
  if (!answer) return fail(answer.error());
  return read_outcome(*answer, kNothingToHandOver);
}

}  // namespace

bool VllmDialect::can_hand_off(const ClientCall& call) const {
  return !needs_one_worker(call.body);
}

wire::SplicedBody NixlPullDialect::prefill_body(const ClientCall& call,
                                                const HandoffTicket&) const {
  return nixl_prefill_body(call);
}

wire::SplicedBody NixlPullDialect::decode_body(const ClientCall& call, const HandoffTicket&,
                                               const PrefillOutcome& outcome,
                                               DecodePurpose purpose) const {
  wire::JsonSplice splice = answer_leg(call, kVllm, purpose);
  if (outcome.handoff.empty()) {
    set_ids_alone(splice, call, model::Engine::Vllm);
  } else {
    set_kv_transfer_params(splice, call, outcome.handoff);
  }
  return splice.build();
}

Result<PrefillOutcome> NixlPullDialect::read_prefill_answer(const std::string& json) const {
  const auto answer = parse_prefill_answer(json);
  if (!answer) return fail(answer.error());
  // Nothing was kept of an aborted prefill: the decode worker computes the prompt itself.
  if (means_failure(answer->finish_reason)) {
    PrefillOutcome outcome;
    outcome.usage = usage_of(answer->completion);
    return outcome;
  }
  return read_outcome(*answer, {});
}

wire::SplicedBody NixlPushDialect::prefill_body(const ClientCall& call,
                                                const HandoffTicket&) const {
  return nixl_prefill_body(call);
}

wire::SplicedBody NixlPushDialect::decode_body(const ClientCall& call, const HandoffTicket& ticket,
                                               const PrefillOutcome&, DecodePurpose purpose) const {
  const model::NixlPeer& peer = ticket.peer.nixl;
  wire::JsonSplice splice = answer_leg(call, kVllm, purpose);
  set_kv_transfer_params(
      splice, call,
      fmt::format(R"({{"do_remote_decode":false,"do_remote_prefill":true,"remote_engine_id":{},)"
                  R"("remote_host":{},"remote_port":{},"tp_size":{},"pp_size":{},)"
                  R"("remote_request_id":{}}})",
                  wire::json_quote(peer.engine_id), wire::json_quote(peer.side_channel.host),
                  peer.side_channel.port, peer.tensor_parallel_size, peer.pipeline_parallel_size,
                  wire::json_quote(ticket.request_id)));
  return splice.build();
}

Result<PrefillOutcome> NixlPushDialect::read_prefill_answer(const std::string& json) const {
  return read_together_outcome(json);
}

wire::SplicedBody MooncakeDialect::prefill_body(const ClientCall& call,
                                                const HandoffTicket& ticket) const {
  // An end of text as the very first token would release the blocks, and decode would wait for
  // them in vain.
  return single_token_leg(
             call, fmt::format(
                       R"({{"do_remote_decode":true,"do_remote_prefill":false,"transfer_id":{}}})",
                       wire::json_quote(ticket.request_id)))
      .set("ignore_eos", "true")
      .build();
}

wire::SplicedBody MooncakeDialect::decode_body(const ClientCall& call, const HandoffTicket& ticket,
                                               const PrefillOutcome&, DecodePurpose purpose) const {
  const model::Endpoint bootstrap{ticket.peer.host,
                                  ticket.peer.bootstrap_port.value_or(kMooncakeBootstrapPort)};
  wire::JsonSplice splice = answer_leg(call, kVllm, purpose);
  set_kv_transfer_params(
      splice, call,
      fmt::format(R"({{"do_remote_decode":false,"do_remote_prefill":true,)"
                  R"("remote_bootstrap_addr":{},"remote_engine_id":{},"transfer_id":{}}})",
                  wire::json_quote("http://" + bootstrap.to_string()),
                  wire::json_quote(ticket.peer.engine_id), wire::json_quote(ticket.request_id)));
  return splice.build();
}

Result<PrefillOutcome> MooncakeDialect::read_prefill_answer(const std::string& json) const {
  return read_together_outcome(json);
}

}  // namespace baton::engine
