// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/answer.h"

#include <algorithm>
#include <array>

namespace baton::sim {
namespace {

constexpr std::array<std::string_view, 16> kFirstSyllable{"ka", "lo",  "mi", "ru", "te", "so",
                                                          "na", "vi",  "pe", "du", "ra", "li",
                                                          "mo", "shi", "be", "fo"};
constexpr std::array<std::string_view, 16> kLastSyllable{
    "n", "ra", "to", "mi", "lu", "se", "ki", "va", "do", "ne", "ri", "sa", "tu", "me", "lo", "ha"};
constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15U;
constexpr std::uint64_t kHashBasis = 0xCBF29CE484222325U;
constexpr std::uint64_t kLengthSalt = 0xA5A5A5A5A5A5A5A5U;
constexpr TokenId kVocabulary = 50000;
constexpr TokenId kReservedTokens = 10;
constexpr TokenId kFirstOutputToken = 60000;
constexpr TokenId kOutputTokens = 256;
static_assert(kVocabularySize >= kFirstOutputToken + kOutputTokens);

bool is_word_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= 'a' && byte <= 'z') || byte == '_';
}

std::size_t piece_length(std::string_view text, std::size_t begin) {
  std::size_t end = begin + 1;
  if (is_word_byte(text[begin])) {
    while (end < text.size() && is_word_byte(text[end])) ++end;
  }
  return end - begin;
}

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

// The first stop string in `text`, as (offset, which one). Offsets before `from` are known clean.
struct StopMatch {
  std::size_t offset = std::string::npos;
  const std::string* stop = nullptr;
};

StopMatch find_stop(const std::string& text, std::size_t from,
                    const std::vector<std::string>& stops) {
  StopMatch best;
  for (const std::string& stop : stops) {
    const std::size_t back = std::min(from, stop.size());
    const std::size_t at = text.find(stop, from - back);
    if (at < best.offset) best = {at, &stop};
  }
  return best;
}

void cut_at_stop_string(AnswerPlan& plan, const std::vector<std::string>& stops) {
  std::string text;
  for (std::uint32_t i = 0; i < plan.tokens; ++i) {
    const std::size_t before = text.size();
    if (plan.begun + i > 0) text += ' ';
    text += output_word(plan.hash, plan.begun + i);
    const StopMatch match = find_stop(text, before, stops);
    if (match.stop == nullptr) continue;
    plan.tokens = i + 1;
    plan.finish = Finish::Stop;
    plan.text_end = match.offset;
    plan.matched_stop = *match.stop;
    return;
  }
}

std::uint64_t extend_hash(std::uint64_t hash, TokenId token) {
  for (int shift = 0; shift < 32; shift += 8) {
    hash ^= (token >> shift) & 0xFFU;
    hash *= 0x100000001B3U;
  }
  return hash;
}

std::uint64_t output_bits(std::uint64_t hash, std::uint64_t index) {
  return mix(hash + (index + 1) * kGolden);
}

bool begins_answer(std::uint64_t hash, std::span<const TokenId> tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] != output_token(hash, i)) return false;
  }
  return true;
}

}  // namespace

TokenId token_of(std::string_view piece) {
  std::uint32_t hash = 2166136261U;
  for (const char c : piece) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 16777619U;
  }
  return hash % kVocabulary + kReservedTokens;
}

void append_tokens(std::string_view text, std::vector<TokenId>& out) {
  std::size_t i = 0;
  while (i < text.size()) {
    const std::string_view piece = text.substr(i, piece_length(text, i));
    out.push_back(token_of(piece));
    i += piece.size();
  }
}

std::vector<std::string_view> pieces_of(std::string_view text) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    pieces.push_back(text.substr(0, piece_length(text, 0)));
    text.remove_prefix(pieces.back().size());
  }
  return pieces;
}

std::uint64_t hash_prompt(std::span<const TokenId> tokens) {
  std::uint64_t hash = kHashBasis;
  for (const TokenId token : tokens) hash = extend_hash(hash, token);
  return hash;
}

bool is_output_token(TokenId token) {
  return token >= kFirstOutputToken && token - kFirstOutputToken < kOutputTokens;
}

TokenId output_token(std::uint64_t hash, std::uint64_t index) {
  return kFirstOutputToken + static_cast<TokenId>(output_bits(hash, index) % kOutputTokens);
}

std::string word_of_output_token(TokenId token) {
  const TokenId x = token - kFirstOutputToken;
  std::string word(kFirstSyllable[x & 15U]);
  word += kLastSyllable[(x >> 4) & 15U];
  return word;
}

std::string output_word(std::uint64_t hash, std::uint64_t index) {
  return word_of_output_token(output_token(hash, index));
}

std::vector<AnswerOrigin> answer_origins(std::span<const TokenId> prompt,
                                         std::optional<std::uint64_t> seed, std::uint32_t choices) {
  std::size_t asked = prompt.size();
  while (asked > 0 && is_output_token(prompt[asked - 1])) --asked;
  const std::uint64_t hash = hash_prompt(prompt.first(asked));

  std::vector<AnswerOrigin> origins;
  for (std::uint32_t k = 0; k < choices; ++k) {
    const auto vary = [&](std::uint64_t h) { return seed ? h ^ mix(*seed + k + kGolden) : h + k; };
    // Moves tokens of the run to the prompt, one by one, until the rest begins an answer to it. An
    // empty rest always does.
    std::size_t split = asked;
    std::uint64_t before = hash;
    while (!begins_answer(vary(before), prompt.subspan(split))) {
      before = extend_hash(before, prompt[split++]);
    }
    origins.push_back({vary(before), static_cast<std::uint32_t>(prompt.size() - split)});
  }
  return origins;
}

std::uint32_t natural_length(std::uint64_t hash, std::uint32_t min_output,
                             std::uint32_t max_output) {
  const std::uint64_t range = std::uint64_t{max_output} - min_output + 1;
  return min_output + static_cast<std::uint32_t>(mix(hash ^ kLengthSalt) % range);
}

AnswerPlan plan_answer(const AnswerOrigin& origin, const AnswerLimits& limits) {
  AnswerPlan plan;
  plan.hash = origin.hash;
  plan.begun = origin.begun;
  plan.finish = limits.tool_call ? Finish::ToolCalls : Finish::Stop;
  const std::uint32_t whole =
      limits.tool_call ? kToolCallWords
                       : natural_length(origin.hash, limits.min_output, limits.max_output);
  plan.tokens = whole > origin.begun ? whole - origin.begun : 0;
  if (!limits.tool_call) plan.tokens = std::max(plan.tokens, limits.min_tokens);
  if ((limits.ignore_eos && !limits.tool_call) || limits.cap <= plan.tokens) {
    plan.tokens = limits.cap;
    plan.finish = Finish::Length;
  }
  if (!limits.tool_call && !limits.stop.empty()) cut_at_stop_string(plan, limits.stop);
  return plan;
}

void AnswerCursor::Piece::append(Piece&& next) {
  text += next.text;
  if (token) earlier.push_back(*token);
  token = next.token;
}

AnswerCursor::Piece AnswerCursor::next() {
  Piece piece;
  const std::uint64_t position = std::uint64_t{plan_.begun} + index_;
  piece.hash = plan_.hash;
  piece.position = position;
  piece.offset = std::min(offset_, plan_.text_end);
  if (done()) return piece;
  piece.token = output_token(plan_.hash, position);
  piece.opens = position == 0;
  if (!piece.opens) piece.text += ' ';
  piece.text += output_word(plan_.hash, position);
  const std::size_t start = offset_;
  offset_ += piece.text.size();
  if (offset_ > plan_.text_end) {
    piece.text.resize(plan_.text_end > start ? plan_.text_end - start : 0);
  }
  ++index_;
  return piece;
}

}  // namespace baton::sim
