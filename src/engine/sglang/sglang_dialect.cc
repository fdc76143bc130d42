// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/sglang/sglang_dialect.h"

#include "engine/shared/dialect_fields.h"
#include "engine/shared/prefill_answer.h"
#include "engine/shared/usage_merge.h"

#include <fmt/format.h>

namespace baton::engine {
namespace {

constexpr model::Engine kSglang = model::Engine::Sglang;

void set_room(wire::JsonSplice& splice, const HandoffTicket& ticket) {
  const auto port = ticket.peer.bootstrap_port;
  splice.set("bootstrap_host", wire::json_quote(ticket.peer.host));
  splice.set("bootstrap_port", port ? fmt::format("{}", *port) : "null");
  splice.set("bootstrap_room", fmt::format("{}", ticket.bootstrap_room));
}

}  // namespace

// A decode worker repeats the prompt, and the prefill worker knows its log-probabilities.
bool BootstrapDialect::can_hand_off(const ClientCall&) const { return true; }

wire::SplicedBody BootstrapDialect::prefill_body(const ClientCall& call,
                                                 const HandoffTicket& ticket) const {
  wire::JsonSplice splice = prefill_leg(call, kSglang);
  set_room(splice, ticket);
  return splice.build();
}

wire::SplicedBody BootstrapDialect::decode_body(const ClientCall& call, const HandoffTicket& ticket,
                                                const PrefillOutcome&,
                                                DecodePurpose purpose) const {
  wire::JsonSplice splice = answer_leg(call, kSglang, purpose);
  set_room(splice, ticket);
  return splice.build();
}

Result<PrefillOutcome> BootstrapDialect::read_prefill_answer(const std::string& json) const {
  const auto answer = parse_sound_prefill_answer(json);
  if (!answer) return fail(answer.error());
  PrefillOutcome outcome;
  outcome.handoff = kNothingToHandOver;
  outcome.usage = usage_of(answer->completion);
  outcome.input_logprobs = input_logprobs_of(answer->completion);
  return outcome;
}

}  // namespace baton::engine
