// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/logprobs.h"
#include "tools/sim/response.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

namespace baton::sim {

// Role. The answers of vLLM 0.32: whole ones with every field of its models, chunks with those that
//   it sets.
// Confinement. One thread.
// Lifetime. One per request.
class VllmResponse final : public ResponseShape {
 public:
  VllmResponse(const Options& options, const GenerationRequest& request, std::string id,
               std::int64_t created);

  void open_choice(std::string& out, std::uint32_t index, std::uint64_t hash,
                   const std::vector<TokenId>& prompt, const Usage* usage = nullptr) const override;
  void token(std::string& out, std::uint32_t index, const AnswerCursor::Piece& piece,
             const AnswerPlan* finish, const Usage* usage,
             const std::vector<TokenId>* prompt = nullptr) const override;
  void usage(std::string& out, const Usage& usage) const override;
  std::string whole(const std::vector<FinishedChoice>& choices, const Usage& usage,
                    const std::string& kv_transfer_params) const override;
  bool finish_rides_on_token() const override { return true; }

 private:
  void begin_choice(std::string& out, std::uint32_t index) const;
  void end_chunk(std::string& out, const Usage* usage, bool last) const;
  void add_delta(std::string& out, const AnswerCursor::Piece& piece,
                 const AnswerPlan* finish) const;
  void add_finish(std::string& out, const AnswerPlan* finish) const;
  void add_logprobs(std::string& out, std::uint32_t index, const AnswerCursor::Piece& piece,
                    const std::vector<TokenId>* prompt) const;
  nlohmann::ordered_json message(const FinishedChoice& choice) const;
  nlohmann::ordered_json logprobs(const FinishedChoice& choice) const;
  nlohmann::ordered_json usage_json(const Usage& usage) const;
  // The prompt before the answer, where it is asked for.
  std::string echo(std::uint32_t index) const;
  void add_prompt(CompletionLogprobs& logprobs, std::uint32_t index,
                  const std::vector<TokenId>& prompt) const;
  bool tells_prompt_logprobs() const { return prompt_logprobs_.has_value(); }

  std::optional<std::uint32_t> top_;  // log-probabilities besides the sampled token's
  std::optional<std::uint32_t> prompt_logprobs_;
  TokenNames names_;
  bool echo_;
  bool prompt_alone_;
  bool include_usage_;
  std::uint32_t n_;
  std::vector<std::vector<std::string>> pieces_;
  std::optional<std::string> prompt_text_;
  bool tells_more_of_cache_;
  std::string fingerprint_;
};

}  // namespace baton::sim
