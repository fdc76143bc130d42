// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/sglang_logprobs.h"

#include <nlohmann/json.hpp>

namespace baton::sim {
namespace {

using nlohmann::ordered_json;

// A function of the token alone, so that all workers compute the same.
double logprob_of(TokenId token) { return -static_cast<double>(token % 1000 + 1) / 128; }

void add_entry(ordered_json& out, TokenId token, bool known, std::uint32_t top) {
  const std::string text = std::to_string(token);
  out["text_offset"].push_back(-1);  // SGLang knows none
  out["token_logprobs"].push_back(known ? ordered_json(logprob_of(token)) : ordered_json());
  out["tokens"].push_back(text);
  if (top > 0)
    out["top_logprobs"].push_back(known ? ordered_json{{text, logprob_of(token)}} : ordered_json());
}

}  // namespace

std::string sglang_logprobs(std::span<const TokenId> prompt, std::span<const TokenId> answer,
                            std::uint32_t top) {
  ordered_json out;
  for (const char* list : {"text_offset", "token_logprobs", "tokens", "top_logprobs"})
    out[list] = ordered_json::array();
  for (std::size_t i = 0; i < prompt.size(); ++i) add_entry(out, prompt[i], i > 0, top);
  for (const TokenId token : answer) add_entry(out, token, true, top);
  return out.dump();
}

}  // namespace baton::sim
