// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/model_tokens.h"

#include "wire/json_object.h"

#include <chrono>

namespace baton::sim {

Result<std::unique_ptr<const TokenSource>> ModelTokens::load(const std::string& folder,
                                                             const prompt::Rules& rules) {
  auto preprocessor = prompt::Preprocessor::load({.folder = folder});
  if (!preprocessor) return fail(std::move(preprocessor.error()));
  return std::unique_ptr<const TokenSource>(new ModelTokens(std::move(*preprocessor), rules));
}

Result<TokenSource::Prompts> ModelTokens::prompts(Api api, const nlohmann::json& /*body*/,
                                                  std::string_view raw) const {
  const auto body = wire::JsonObject::parse(raw);
  if (!body) return fail(body.error());
  const prompt::RenderContext context{.now = std::chrono::system_clock::now(), .rules = rules_};
  auto prepared = api == Api::Chat ? preprocessor_->chat(*body, context)
                                   : preprocessor_->completion(*body, context);
  if (!prepared) return fail(std::move(prepared.error()));
  if (prepared->prompts.empty()) return fail(Errc::InvalidRequest, prepared->inexact);
  return std::move(prepared->prompts);
}

std::optional<std::string> ModelTokens::text(std::span<const TokenId> ids,
                                             bool skip_special) const {
  return preprocessor_->tokenizer(rules_).decode(
      ids, skip_special ? tokenizer::SkipSpecial::Yes : tokenizer::SkipSpecial::No);
}

}  // namespace baton::sim
