// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/vllm/vllm_dialect.h"

#include "engine/shared/choice_merge.h"
#include "engine/shared/dialect_fields.h"
#include "engine/shared/prefill_answer.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace baton::engine {
namespace {

constexpr model::Engine kVllm = model::Engine::Vllm;
constexpr model::Version kFirstTellingOfRefusals{.major = 0, .minor = 21, .patch = 0};

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

// Interprets the answer of a prefill that was not given up. Only the parameters tell whether blocks
// are held: vLLM also keeps those of a request that has ended.
Result<PrefillOutcome> read_outcome(const PrefillAnswer& answer) {
  PrefillOutcome outcome;
  outcome.usage = usage_of(answer.completion);
  const auto params = answer.completion.find("kv_transfer_params");
  const bool kept = params && *params != "null";
  if (kept && !params->starts_with('{')) {
    return fail(Errc::EngineProtocol, "the prefill answer's kv_transfer_params are not an object");
  }
  if (kept) outcome.handoff = *params;
  if (means_end(answer.finish_reason)) {
    outcome.final_answer =
        wire::JsonSplice(answer.completion).remove("kv_transfer_params").build().joined();
    return outcome;
  }
  if (!kept && answer.finish_reason != "length") {
    return fail(
        Errc::EngineProtocol,
        fmt::format("the prefill worker ended with the finish_reason {}, which is no end of "
                    "an answer, and without kv_transfer_params",
                    wire::json_quote(answer.finish_reason)));
  }
  outcome.unkept = !kept;
  return outcome;
}

}  // namespace

bool VllmDialect::can_hand_off(const ClientCall& call) const {
  // Requests that an engine refuses as a whole are sent to one worker unchanged.
  return !needs_one_worker(call.body) && (call.choice || !wants_greedy_choices(call.body));
}

wire::SplicedBody NixlPullDialect::prefill_body(const ClientCall& call,
                                                const HandoffTicket&) const {
  return nixl_prefill_body(call);
}

wire::SplicedBody NixlPullDialect::decode_body(const ClientCall& call, const HandoffTicket& ticket,
                                               const PrefillOutcome& outcome,
                                               DecodePurpose purpose) const {
  wire::JsonSplice splice = answer_leg(call, kVllm, purpose);
  if (outcome.handoff.empty()) {
    set_ids_alone(splice, call, model::Engine::Vllm);
  } else {
    set_kv_transfer_params(splice, call, outcome.handoff);
  }
  // The salt keeps the release out of the prefix cache: if its blocks were freed already, it has
  // read another request's data.
  if (purpose == DecodePurpose::Release)
    splice.set("cache_salt", wire::json_quote("release-" + ticket.request_id));
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
  return read_outcome(*answer);
}

bool NixlPullDialect::frees_blocks(const DecodeEnd& end) const {
  using How = DecodeEnd::How;
  if (end.how == How::Closed || end.how == How::Answered) return true;
  // A refusal by the web framework has no such type.
  const bool by_server = end.error_type.ends_with("Error");
  return by_server && end.how != How::Unsent &&
         end.version.value_or(kFirstTellingOfRefusals) >= kFirstTellingOfRefusals;
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
  const auto answer = parse_sound_prefill_answer(json);
  if (!answer) return fail(answer.error());
  auto outcome = read_outcome(*answer);
  // The decode worker would wait for ever.
  if (outcome && outcome->unkept) return fail(Errc::NoHandoff, std::string(kNoConnector));
  return outcome;
}

bool NixlPushDialect::frees_blocks(const DecodeEnd& end) const {
  using How = DecodeEnd::How;
  // With an error of its own the decode worker tells that it could not register.
  return end.how == How::Closed || end.how == How::Answered ||
         (end.how == How::Broken && end.error_type.empty());
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
  const auto answer = parse_sound_prefill_answer(json);
  if (!answer) return fail(answer.error());
  auto outcome = read_outcome(*answer);
  // This connector writes no parameters.
  if (outcome && std::exchange(outcome->unkept, false)) outcome->handoff = kNothingToHandOver;
  return outcome;
}

}  // namespace baton::engine
