// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/dialect.h"

namespace baton::engine {

// TensorRT-LLM, context first: `disaggregated_params` go to the context worker, come back filled,
// and go on to the generation worker with the prompt as token ids. It refuses fields it does not
// know, so nothing of another dialect may reach it.
class TrtllmDialect final : public Dialect {
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
