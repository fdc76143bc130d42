// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Log-probabilities, which follow from the answer as its words do.
#pragma once

#include "tools/sim/options.h"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton::sim {

struct TokenLogprob {
  TokenId token = 0;
  std::string text;
  double logprob = 0;
  std::uint32_t rank = 1;
};

// Token `index` of the answer `hash`, which is always the likeliest, and the `top` likeliest; the
// sampled one is the first.
std::vector<TokenLogprob> output_logprobs(std::uint64_t hash, std::uint64_t index,
                                          std::uint32_t top);
// A token of a prompt, which is never among the `top` likeliest: it comes first all the same.
std::vector<TokenLogprob> prompt_logprobs(TokenId token, std::string_view text,
                                          std::uint64_t position, std::uint32_t top);

// How log-probabilities show their tokens.
enum class TokenNames { Text, Ids };

// vLLM's shapes. A chat's: one entry of `content`.
nlohmann::ordered_json chat_logprob(std::span<const TokenLogprob> tokens, std::uint32_t top,
                                    TokenNames names);

// Role. The parallel lists of a completion's `logprobs`.
// Confinement. One thread.
class CompletionLogprobs {
 public:
  explicit CompletionLogprobs(std::size_t text_offset, TokenNames names)
      : offset_(text_offset), names_(names) {}

  void add(std::span<const TokenLogprob> tokens);
  // The first token of a prompt, of which nothing is known.
  void add_unknown(TokenId token, std::string_view text);
  nlohmann::ordered_json json() const;

 private:
  void begin_token(const std::string& name);

  std::size_t offset_;
  TokenNames names_;
  std::vector<std::size_t> offsets_;
  std::vector<std::string> names_of_tokens_;
  std::vector<std::vector<TokenLogprob>> tokens_;  // empty where nothing is known
};

// A prompt's, from its second token on; the first has null.
nlohmann::ordered_json prompt_logprobs_json(const std::vector<TokenId>& prompt,
                                            const std::vector<std::string>& pieces,
                                            std::uint32_t top);

}  // namespace baton::sim
