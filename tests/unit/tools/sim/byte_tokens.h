// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/token_source.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace baton::sim {

// A tokenizer that anybody can repeat: a byte is a token. A chat is the contents of its messages.
class ByteTokens final : public TokenSource {
 public:
  static std::vector<TokenId> of(const std::string& text) {
    std::vector<TokenId> ids;
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }

  Result<Prompts> prompts(Api api, const nlohmann::json& body,
                          std::string_view /*raw*/) const override {
    if (api == Api::Completions) {
      const nlohmann::json& prompt = body.at("prompt");
      if (prompt.is_string()) return Prompts{of(prompt)};
      if (prompt.front().is_number()) return Prompts{prompt.get<std::vector<TokenId>>()};
      Prompts all;
      for (const auto& one : prompt)
        all.push_back(one.is_string() ? of(one) : one.get<std::vector<TokenId>>());
      return all;
    }
    std::string text;
    for (const auto& message : body.at("messages")) text += message.at("content");
    return Prompts{of(text)};
  }
  std::optional<std::string> text(std::span<const TokenId> ids, bool skip_special) const override {
    std::string out = skip_special ? "" : "<s>";
    for (const TokenId id : ids) out += static_cast<char>(id);
    return out;
  }
  bool can_be_known() const override { return true; }
};

}  // namespace baton::sim
