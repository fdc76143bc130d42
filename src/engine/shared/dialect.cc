// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/dialect.h"

#include "engine/sglang/sglang_dialect.h"
#include "engine/shared/dialect_fields.h"
#include "engine/trtllm/trtllm_dialect.h"
#include "engine/vllm/vllm_dialect.h"

namespace baton::engine {

const Dialect& dialect_of(model::HandoffMode mode) {
  static const NixlPullDialect nixl_pull;
  static const NixlPushDialect nixl_push;
  static const MooncakeDialect mooncake;
  static const BootstrapDialect bootstrap;
  static const ContextFirstDialect context_first;
  static const GenerationFirstDialect generation_first;
  switch (mode) {
    case model::HandoffMode::NixlPush:
      return nixl_push;
    case model::HandoffMode::Mooncake:
      return mooncake;
    case model::HandoffMode::Bootstrap:
      return bootstrap;
    case model::HandoffMode::ContextFirst:
      return context_first;
    case model::HandoffMode::GenerationFirst:
      return generation_first;
    case model::HandoffMode::NixlPull:
      break;
  }
  return nixl_pull;
}

wire::SplicedBody plain_body(const ClientCall& call, model::Engine engine) {
  wire::JsonSplice leg = answer_leg(call, engine, DecodePurpose::Answer);
  set_ids_alone(leg, call, engine);
  return leg.build();
}

}  // namespace baton::engine
