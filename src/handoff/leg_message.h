// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "engine/shared/client_body.h"
#include "engine/shared/dialect.h"
#include "engine/shared/leg_name.h"
#include "engine/shared/token_ids.h"
#include "fleet/worker.h"
#include "handoff/request.h"
#include "handoff/tools.h"
#include "http_client/exchange.h"
#include "model/worker.h"
#include "wire/http_message.h"
#include "wire/json_object.h"

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace baton::handoff {

using boost::asio::awaitable;

// The source of all legs' messages. Shared: a leg keeps it until its request is sent, also if
// the session needs it no longer.
struct ClientMessage {
  std::shared_ptr<const engine::ClientBody> body;
  std::shared_ptr<const std::string> token_ids;  // null: unknown
  wire::Headers headers;
};

// The body of a leg's request.
struct LegBody {
  wire::SplicedBody body;
  std::string signature = {};  // the header line that its hand-off is signed with; empty: none
};

// Role. Makes the messages of a request's legs, sends them, and reads the workers' answers. The CPU
//   threads make and read long ones.
// Confinement. One I/O thread.
// Lifetime. Part of a session, whose request and tools outlive it. A coroutine refers only to what
//   its caller, which awaits it at once, keeps: never to what the session may release meanwhile.
class LegMessages {
 public:
  LegMessages(HandoffTools& tools, const HandoffRequest& request)
      : tools_(tools), request_(request) {}

  // Refers to `client` and `progress`.
  engine::ClientCall call(const fleet::Worker& worker, engine::Leg leg, const ClientMessage& client,
                          const engine::Progress* progress, engine::LegName name = {}) const;
  awaitable<wire::SplicedBody> prefill_body(
      model::HandoffMode mode, engine::ClientCall wanted,
      std::shared_ptr<const engine::HandoffTicket> ticket) const;
  // For a worker that does both.
  awaitable<LegBody> plain_body(engine::ClientCall wanted, model::Engine engine) const;
  awaitable<LegBody> decode_body(model::HandoffMode mode, engine::ClientCall wanted,
                                 std::shared_ptr<const engine::HandoffTicket> ticket,
                                 std::shared_ptr<const engine::PrefillOutcome> outcome,
                                 engine::DecodePurpose purpose) const;
  // Request line and headers.
  std::string head(const fleet::Worker& worker, std::optional<std::uint32_t> rank,
                   const wire::Headers& headers, std::size_t body_size, std::string_view request_id,
                   std::string_view signature = {}) const;

  // Until the head of a good answer is there. `error_type`: that the engine wrote with a refusal.
  awaitable<Result<void>> send(http_client::Exchange& exchange, std::string head,
                               const wire::SplicedBody& body,
                               std::string* error_type = nullptr) const;
  awaitable<Result<engine::PrefillOutcome>> read_prefill(http_client::Exchange& exchange,
                                                         model::HandoffMode mode,
                                                         const fleet::Worker& worker) const;

 private:
  std::string signature(model::HandoffMode mode, const engine::HandoffTicket& ticket,
                        const engine::PrefillOutcome& outcome) const;

  HandoffTools& tools_;
  const HandoffRequest& request_;
};

}  // namespace baton::handoff
