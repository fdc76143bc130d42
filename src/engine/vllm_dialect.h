// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/dialect.h"

namespace baton::engine {

// vLLM with NixlConnector, pull mode: prefill runs first and answers with `kv_transfer_params`; the
// decode worker gets that object as it is and pulls the blocks itself.
class VllmDialect final : public Dialect {
 public:
  LegOrder order() const override { return LegOrder::PrefillFirst; }
  bool can_hand_off(const ClientCall& call) const override;
  wire::SplicedBody prefill_body(const ClientCall& call,
                                 const HandoffTicket& ticket) const override;
  wire::SplicedBody decode_body(const ClientCall& call, const HandoffTicket& ticket,
                                const PrefillOutcome& outcome,
                                DecodePurpose purpose) const override;
  Result<PrefillOutcome> read_prefill_answer(const std::string& json) const override;
};

}  // namespace baton::engine
