// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/shared/dialect.h"

#include <cstdint>
#include <string_view>

namespace baton::engine {

// Default port of a Mooncake prefill worker's bootstrap server.
inline constexpr std::uint16_t kMooncakeBootstrapPort = 8998;

// Error text for a prefill answer without `kv_transfer_params`. With a NIXL connector vLLM writes
// them whenever it computed a prompt, however short.
inline constexpr std::string_view kNoConnector =
    "the prefill worker computed the prompt but keeps nothing for a decode worker (no "
    "kv_transfer_params in its answer): start it with a NIXL connector in --kv-transfer-config, or "
    "make it an aggregated worker";

// vLLM's hand-offs all travel in `kv_transfer_params`, and their prefill legs produce one token
// that is thrown away: the decode worker computes it again.
class VllmDialect : public Dialect {
 public:
  bool can_hand_off(const ClientCall& call) const override;
};

// NixlConnector, pull: prefill runs first and answers with the object; the decode worker gets it as
// it is and reads the blocks itself.
class NixlPullDialect final : public VllmDialect {
 public:
  wire::SplicedBody prefill_body(const ClientCall& call,
                                 const HandoffTicket& ticket) const override;
  wire::SplicedBody decode_body(const ClientCall& call, const HandoffTicket& ticket,
                                const PrefillOutcome& outcome,
                                DecodePurpose purpose) const override;
  Result<PrefillOutcome> read_prefill_answer(const std::string& json) const override;
  // The decode worker tells the prefill worker when it has read the blocks, and also when a request
  // is aborted before it was scheduled. Since 0.21 its server does so for requests that it refuses
  // or that fail, too, but not for those whose fields it could not even read.
  bool frees_blocks(const DecodeEnd& end) const override;
};

// NixlPushConnector: the decode worker is given the prefill worker's address, and waits for it to
// write the blocks. The two are matched by X-Request-Id.
class NixlPushDialect final : public VllmDialect {
 public:
  wire::SplicedBody prefill_body(const ClientCall& call,
                                 const HandoffTicket& ticket) const override;
  wire::SplicedBody decode_body(const ClientCall& call, const HandoffTicket& ticket,
                                const PrefillOutcome& outcome,
                                DecodePurpose purpose) const override;
  // The hand-off is the object the worker answered with: a directory can learn from it.
  Result<PrefillOutcome> read_prefill_answer(const std::string& json) const override;
  // A scheduled decode request has told the prefill worker where to write, and that write happens
  // whatever becomes of the request, unless the decode worker itself gave an error. A release would
  // then wait for a second write, and hold its own blocks for as long as the server runs.
  bool frees_blocks(const DecodeEnd& end) const override;
};

// MooncakeConnector: both workers meet at the prefill worker's bootstrap server, under a transfer
// id.
class MooncakeDialect final : public VllmDialect {
 public:
  wire::SplicedBody prefill_body(const ClientCall& call,
                                 const HandoffTicket& ticket) const override;
  wire::SplicedBody decode_body(const ClientCall& call, const HandoffTicket& ticket,
                                const PrefillOutcome& outcome,
                                DecodePurpose purpose) const override;
  Result<PrefillOutcome> read_prefill_answer(const std::string& json) const override;
};

}  // namespace baton::engine
