// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "prompt/preprocessor.h"
#include "tools/sim/token_source.h"

#include <memory>
#include <string>
#include <utility>

namespace baton::sim {

// Role. A model's own tokenizer and chat template, from a folder of its files.
// Confinement. Any thread.
class ModelTokens final : public TokenSource {
 public:
  // Errors name the file and what is wrong with it. `rules` are those of the simulated release.
  static Result<std::unique_ptr<const TokenSource>> load(const std::string& folder,
                                                         const prompt::Rules& rules = {});

  Result<Prompts> prompts(Api api, const nlohmann::json& body, std::string_view raw) const override;
  std::optional<std::string> text(std::span<const TokenId> ids, bool skip_special) const override;
  bool can_be_known() const override { return true; }

 private:
  ModelTokens(std::shared_ptr<const prompt::Preprocessor> preprocessor, const prompt::Rules& rules)
      : preprocessor_(std::move(preprocessor)), rules_(rules) {}
  std::shared_ptr<const prompt::Preprocessor> preprocessor_;
  prompt::Rules rules_;
};

}  // namespace baton::sim
