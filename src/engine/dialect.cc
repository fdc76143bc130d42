// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/dialect.h"

#include "engine/dialect_fields.h"
#include "engine/sglang_dialect.h"
#include "engine/trtllm_dialect.h"
#include "engine/vllm_dialect.h"
#include "wire/json_array.h"

namespace baton::engine {

std::string_view path_of(Api api) {
  return api == Api::Chat ? "/v1/chat/completions" : "/v1/completions";
}

wire::JsonSplice leg_body(const ClientCall& call) {
  wire::JsonSplice splice(call.body);
  for (const std::string_view field : kHandoffFields) splice.remove(field);
  if (!call.model.empty()) splice.set("model", wire::json_quote(call.model));
  return splice;
}

void shape_as_single_token(wire::JsonSplice& splice, const wire::JsonObject& body) {
  splice.set("stream", "false");
  splice.remove("stream_options");
  splice.remove("min_tokens");
  splice.set("max_tokens", "1");
  if (body.has("max_completion_tokens")) splice.set("max_completion_tokens", "1");
  if (body.has("n")) splice.set("n", "1");
}

wire::SplicedBody Dialect::plain_body(const ClientCall& call) { return leg_body(call).build(); }

const Dialect& dialect_of(model::Engine engine) {
  static const VllmDialect vllm;
  static const SglangDialect sglang;
  static const TrtllmDialect trtllm;
  switch (engine) {
    case model::Engine::Sglang:
      return sglang;
    case model::Engine::Trtllm:
      return trtllm;
    case model::Engine::Vllm:
      break;
  }
  return vllm;
}

bool has_prompt_list(const ClientCall& call) {
  if (call.api != Api::Completions) return false;
  const auto prompt = call.body.find("prompt");
  if (!prompt) return false;
  // A flat list of token ids is one prompt; a list of texts or of lists is several.
  const auto first = wire::first_element(*prompt);
  return first && (first->front() == '"' || first->front() == '[');
}

}  // namespace baton::engine
