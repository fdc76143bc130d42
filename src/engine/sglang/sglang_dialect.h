// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/shared/dialect.h"

namespace baton::engine {

// SGLang: both workers get the same request at the same time and meet in a room on the prefill
// worker's bootstrap server. The decode worker's answer is the client's, its first token included.
class BootstrapDialect final : public Dialect {
 public:
  bool can_hand_off(const ClientCall& call) const override;
  wire::SplicedBody prefill_body(const ClientCall& call,
                                 const HandoffTicket& ticket) const override;
  wire::SplicedBody decode_body(const ClientCall& call, const HandoffTicket& ticket,
                                const PrefillOutcome& outcome,
                                DecodePurpose purpose) const override;
  Result<PrefillOutcome> read_prefill_answer(const std::string& json) const override;
};

}  // namespace baton::engine
