// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/options.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton::sim {

// The simulated tokenizer: runs of word bytes, and every other byte alone.
TokenId token_of(std::string_view piece);
void append_tokens(std::string_view text, std::vector<TokenId>& out);
std::vector<std::string_view> pieces_of(std::string_view text);

// Ids of texts and of answers are far below it; prompts of ids may have any others.
inline constexpr TokenId kVocabularySize = 262144;

// The whole prompt as one number; everything the simulator says follows from it.
std::uint64_t hash_prompt(std::span<const TokenId> tokens);

// Output token `index`. Its id is of a range that no piece of a text has, so that a prompt of token
// ids tells where an answer in it begins.
TokenId output_token(std::uint64_t hash, std::uint64_t index);
bool is_output_token(TokenId token);
// The word of any id of that range.
std::string word_of_output_token(TokenId token);
// Its word (without the space that joins it to the one before).
std::string output_word(std::uint64_t hash, std::uint64_t index);

// Which answer a prompt gets, and how much of it the prompt already carries at its end.
struct AnswerOrigin {
  std::uint64_t hash = 0;
  std::uint32_t begun = 0;
  bool operator==(const AnswerOrigin&) const = default;
};

// One for each of `choices` answers to the same prompt.
std::vector<AnswerOrigin> answer_origins(std::span<const TokenId> prompt,
                                         std::optional<std::uint64_t> seed, std::uint32_t choices);

// Length at which the answer ends by itself, as if the model had sampled its end token.
std::uint32_t natural_length(std::uint64_t hash, std::uint32_t min_output,
                             std::uint32_t max_output);

enum class Finish { Stop, Length, ToolCalls };

inline constexpr std::uint32_t kToolCallWords = 8;

struct AnswerLimits {
  std::uint32_t min_output = 16;
  std::uint32_t max_output = 64;
  std::uint32_t cap = 16;  // the request's max_tokens, or what the context leaves
  std::uint32_t min_tokens = 0;
  bool ignore_eos = false;
  bool tool_call = false;
  std::vector<std::string> stop = {};
};

// Role. One answer, known as a whole before its first token is due: its length, its end, its text.
// Confinement. A value.
// Lifetime. Any.
// Invariants. `text_end` never lies beyond the text of `tokens` tokens.
struct AnswerPlan {
  std::uint64_t hash = 0;
  std::uint32_t begun = 0;   // where in the answer it goes on
  std::uint32_t tokens = 1;  // new ones; none when the end token is the first that comes
  Finish finish = Finish::Stop;
  std::size_t text_end = std::string::npos;  // where a stop string cuts the text
  std::optional<std::string> matched_stop = {};
};

AnswerPlan plan_answer(const AnswerOrigin& origin, const AnswerLimits& limits);

// Role. Reads a planned answer token by token.
// Confinement. One thread.
// Lifetime. Owns its plan.
// Invariants. Yields exactly `plan().tokens` pieces, whose texts joined are the answer; after them
//   the end token, which has neither text nor id.
class AnswerCursor {
 public:
  struct Piece {
    std::string text;  // may be empty where a stop string cut it away
    std::optional<TokenId> token;
    bool opens = false;                 // the answer's very first word
    std::uint64_t hash = 0;             // of the answer
    std::uint64_t position = 0;         // where in it the first token is
    std::size_t offset = 0;             // and its text, in this request's answer
    std::vector<TokenId> earlier = {};  // those before `token` that come together with it

    // Takes the next one in, to come together.
    void append(Piece&& next);
  };

  explicit AnswerCursor(AnswerPlan plan) : plan_(std::move(plan)) {}

  Piece next();
  bool done() const { return index_ >= plan_.tokens; }
  std::uint32_t produced() const { return index_; }
  const AnswerPlan& plan() const { return plan_; }

 private:
  AnswerPlan plan_;
  std::uint32_t index_ = 0;
  std::size_t offset_ = 0;
};

}  // namespace baton::sim
