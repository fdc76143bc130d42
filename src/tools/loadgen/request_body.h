// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/loadgen/conversation.h"
#include "tools/loadgen/options.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace baton::loadgen {

// Role. Writes a conversation as the body of a request.
// Confinement. Immutable; any thread.
class RequestBody {
 public:
  RequestBody(const Plan& plan, std::string_view model);

  // `said`: all of the conversation up to the question, in order.
  std::string write(std::span<const Piece> said, std::uint32_t output_tokens) const;

 private:
  void write_ids(std::string& out, std::span<const Piece> said) const;
  void write_text(std::string& out, std::span<const Piece> said) const;
  void write_messages(std::string& out, std::span<const Piece> said) const;

  Api api_;
  PromptKind prompt_;
  std::uint32_t vocabulary_;
  std::string end_;  // the fields that are the same for all
  bool natural_end_;
};

// The i-th token of a made-up piece, from 256 to below `vocabulary`.
std::uint32_t token_of(std::uint64_t key, std::uint32_t index, std::uint32_t vocabulary);
// The i-th word of it: one of a few hundred that most tokenizers have as one token.
std::string_view word_of(std::uint64_t key, std::uint32_t index);

}  // namespace baton::loadgen
