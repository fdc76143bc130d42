// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/response.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton::sim {

// Role. The answers of SGLang 0.5.23. Its streams differ in style: chats omit unset members,
//   completions and tool calls write them as null.
// Confinement. One thread.
// Lifetime. One per request.
class SglangResponse final : public ResponseShape {
 public:
  SglangResponse(const GenerationRequest& request, std::string id, std::int64_t created);

  void open_choice(std::string& out, std::uint32_t index, std::uint64_t hash,
                   const std::vector<TokenId>& prompt, const Usage* usage = nullptr) const override;
  void token(std::string& out, std::uint32_t index, const AnswerCursor::Piece& piece,
             const AnswerPlan* finish, const Usage* usage,
             const std::vector<TokenId>* prompt = nullptr) const override;
  void close_choice(std::string& out, std::uint32_t index, const AnswerPlan& plan) const override;
  void extension(std::string& out, const std::vector<FinishedChoice>& choices,
                 const Usage& usage) const override;
  void usage(std::string& out, const Usage& usage) const override;
  void abort(std::string& out) const override;
  std::string aborted(const Usage& usage) const override;
  std::string whole(const std::vector<FinishedChoice>& choices, const Usage& usage,
                    const std::string& kv_transfer_params) const override;
  bool finish_rides_on_token() const override { return api_ == Api::Completions; }

 private:
  void begin(std::string& out, std::uint32_t index) const;
  void end(std::string& out, std::string_view logprobs, std::string_view finish,
           const std::optional<std::string>& matched_stop) const;
  void add_usage(std::string& out, const Usage* usage) const;
  void add_tool_call(std::string& out, std::string_view call) const;
  // The echo at a choice's beginning, and log-probabilities. `prompt` is set if its own are told.
  std::string_view echo_of(std::uint32_t index) const;
  std::string piece_logprobs(const AnswerCursor::Piece& piece,
                             const std::vector<TokenId>* prompt) const;
  std::string choice_logprobs(const FinishedChoice& choice) const;
  std::string completion_logprobs(const std::vector<TokenId>* prompt,
                                  std::span<const TokenId> tokens) const;
  std::string chat_logprobs(std::uint64_t hash, std::uint64_t first, std::size_t count) const;
  nlohmann::ordered_json sglext(const std::vector<FinishedChoice>& choices,
                                const Usage& usage) const;

  std::uint32_t samples_;
  std::vector<std::string> echoes_;
  std::optional<std::uint32_t> logprobs_;
  bool input_logprobs_;  // this worker knows the prompt's
  SglangExtras extras_;
};

}  // namespace baton::sim
