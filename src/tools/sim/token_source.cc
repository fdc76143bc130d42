// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/token_source.h"

#include "tools/sim/dialect_fields.h"
#include "tools/sim/prompt.h"

#include <utility>

namespace baton::sim {

Result<TokenSource::Prompts> WordTokens::prompts(Api api, const nlohmann::json& body,
                                                 std::string_view /*raw*/) const {
  if (api == Api::Completions) {
    const nlohmann::json* prompt = field(body, "prompt");
    if (prompt == nullptr) return fail(Errc::InvalidRequest, "prompt: field required");
    return completion_prompts(*prompt);
  }
  auto tokens = chat_prompt(body);
  if (!tokens) return fail(std::move(tokens.error()));
  Prompts one;
  one.push_back(std::move(*tokens));
  return one;
}

std::optional<std::string> WordTokens::text(std::span<const TokenId> /*ids*/,
                                            bool /*skip_special*/) const {
  return std::nullopt;
}

}  // namespace baton::sim
