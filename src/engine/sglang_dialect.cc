// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/sglang_dialect.h"

#include "engine/dialect_fields.h"

#include <fmt/format.h>

namespace baton::engine {
namespace {

wire::SplicedBody with_room(const ClientCall& call, const HandoffTicket& ticket) {
  wire::JsonSplice splice = leg_body(call);
  splice.set("bootstrap_host", wire::json_quote(ticket.bootstrap_host));
  splice.set("bootstrap_port",
             ticket.bootstrap_port ? fmt::format("{}", *ticket.bootstrap_port) : "null");
  // The engine turns one room into room, room+1 … for a list of prompts.
  splice.set("bootstrap_room", fmt::format("{}", ticket.bootstrap_room));
  return splice.build();
}

}  // namespace

wire::SplicedBody SglangDialect::prefill_body(const ClientCall& call,
                                              const HandoffTicket& ticket) const {
  return with_room(call, ticket);
}

wire::SplicedBody SglangDialect::decode_body(const ClientCall& call, const HandoffTicket& ticket,
                                             const PrefillOutcome&, DecodePurpose) const {
  return with_room(call, ticket);
}

Result<PrefillOutcome> SglangDialect::read_prefill_answer(const std::string&) const {
  return PrefillOutcome{};
}

}  // namespace baton::engine
