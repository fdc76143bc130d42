// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/dialect.h"

#include <cstdint>

namespace baton::engine {

// Where a Mooncake prefill worker's bootstrap server listens unless told otherwise.
inline constexpr std::uint16_t kMooncakeBootstrapPort = 8998;

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
};

// NixlPushConnector: the decode worker is told where the prefill worker is, and waits for it to
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
