// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "tools/sim/request.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton::sim {

// Role. The simulated engine's tokenizer: text to token ids and back.
// Confinement. Immutable; any thread.
class TokenSource {
 public:
  using Prompts = std::vector<std::vector<TokenId>>;

  virtual ~TokenSource() = default;

  // One prompt for a chat, all prompts of a completion's `prompt`; ids are taken as they are. `raw`
  // is the text that `body` was read from.
  virtual Result<Prompts> prompts(Api api, const nlohmann::json& body,
                                  std::string_view raw) const = 0;
  // nullopt where no way leads back.
  virtual std::optional<std::string> text(std::span<const TokenId> ids,
                                          bool skip_special) const = 0;
  // Whether others can know the ids of a text, so that theirs can be held against these.
  virtual bool can_be_known() const = 0;
};

// The simulator's own: runs of word bytes, and every other byte alone.
class WordTokens final : public TokenSource {
 public:
  Result<Prompts> prompts(Api api, const nlohmann::json& body, std::string_view raw) const override;
  std::optional<std::string> text(std::span<const TokenId> ids, bool skip_special) const override;
  bool can_be_known() const override { return false; }
};

}  // namespace baton::sim
