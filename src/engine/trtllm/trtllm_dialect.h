// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/shared/dialect.h"

namespace baton::engine {

// TensorRT-LLM's hand-offs travel in `disaggregated_params`. It refuses fields it does not know, so
// nothing of another dialect may reach it.
class TrtllmDialect : public Dialect {
 public:
  bool can_hand_off(const ClientCall& call) const override;
};

// Context first: the params go to the context worker, come back filled, and go on to the
// generation worker with the prompt as token ids.
class ContextFirstDialect final : public TrtllmDialect {
 public:
  wire::SplicedBody prefill_body(const ClientCall& call,
                                 const HandoffTicket& ticket) const override;
  wire::SplicedBody decode_body(const ClientCall& call, const HandoffTicket& ticket,
                                const PrefillOutcome& outcome,
                                DecodePurpose purpose) const override;
  std::string signed_params(const HandoffTicket& ticket,
                            const PrefillOutcome& outcome) const override;
  Result<PrefillOutcome> read_prefill_answer(const std::string& json) const override;
};

// Generation first: the generation worker is given the context worker's address and the request to
// wait for; both run together.
class GenerationFirstDialect final : public TrtllmDialect {
 public:
  wire::SplicedBody prefill_body(const ClientCall& call,
                                 const HandoffTicket& ticket) const override;
  wire::SplicedBody decode_body(const ClientCall& call, const HandoffTicket& ticket,
                                const PrefillOutcome& outcome,
                                DecodePurpose purpose) const override;
  std::string signed_params(const HandoffTicket& ticket,
                            const PrefillOutcome& outcome) const override;
  Result<PrefillOutcome> read_prefill_answer(const std::string& json) const override;
};

}  // namespace baton::engine
