// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/logprobs.h"

#include "tools/sim/answer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace baton::sim {
namespace {

using nlohmann::ordered_json;

constexpr TokenId kFirstWord = 60000;
constexpr TokenId kWords = 256;
// Steps that binary fractions hold exactly, so that no rounding shows.
constexpr double kStep = 1.0 / 64;

double spread(std::uint64_t seed) { return static_cast<double>(seed % 256) * kStep; }

TokenLogprob word(TokenId number, double logprob, std::uint32_t rank) {
  const TokenId id = kFirstWord + number % kWords;
  return {.token = id, .text = " " + word_of_output_token(id), .logprob = logprob, .rank = rank};
}

std::string name_of(const TokenLogprob& token, TokenNames names) {
  return names == TokenNames::Ids ? fmt::format("token_id:{}", token.token) : token.text;
}

ordered_json json_bytes_of(std::string_view text) {
  ordered_json bytes = ordered_json::array();
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

// In code points, as Python counts.
std::size_t length_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

std::vector<TokenLogprob> output_logprobs(std::uint64_t hash, std::uint64_t index,
                                          std::uint32_t top) {
  const TokenId id = output_token(hash, index);
  const double best = -kStep - spread(hash ^ (index * 31));
  std::vector<TokenLogprob> tokens{word(id - kFirstWord, best, 1)};
  if (index == 0) tokens.front().text.erase(0, 1);
  for (std::uint32_t k = 1; k < top; ++k)
    tokens.push_back(word(id - kFirstWord + k, best - 16 * kStep * k, k + 1));
  return tokens;
}

std::vector<TokenLogprob> prompt_logprobs(TokenId token, std::string_view text,
                                          std::uint64_t position, std::uint32_t top) {
  const double best = -1 - spread(position * 31);
  std::vector<TokenLogprob> tokens{{.token = token,
                                    .text = std::string(text),
                                    .logprob = best - 8 - spread(token),
                                    .rank = top + 1 + token % 1000}};
  for (std::uint32_t k = 0; k < top; ++k) {
    const auto number = static_cast<TokenId>(position % kWords) + k;
    TokenLogprob other = word(number, best - 16 * kStep * k, k + 1);
    // A token that is told already stays where it is.
    if (other.token != token) tokens.push_back(std::move(other));
  }
  return tokens;
}

ordered_json chat_logprob(std::span<const TokenLogprob> tokens, std::uint32_t top,
                          TokenNames names) {
  const TokenLogprob& sampled = tokens.front();
  ordered_json best = ordered_json::array();
  for (const TokenLogprob& one : tokens.first(std::min<std::size_t>(top, tokens.size()))) {
    const std::string name = name_of(one, names);
    best.push_back({{"token", name}, {"logprob", one.logprob}, {"bytes", json_bytes_of(name)}});
  }
  return {{"token", name_of(sampled, names)},
          {"logprob", sampled.logprob},
          {"bytes", json_bytes_of(sampled.text)},
          {"top_logprobs", std::move(best)}};
}

void CompletionLogprobs::begin_token(const std::string& name) {
  offsets_.push_back(offset_);
  names_of_tokens_.push_back(name);
  offset_ += length_of(name);
}

void CompletionLogprobs::add(std::span<const TokenLogprob> tokens) {
  begin_token(name_of(tokens.front(), names_));
  tokens_.emplace_back(tokens.begin(), tokens.end());
}

void CompletionLogprobs::add_unknown(TokenId token, std::string_view text) {
  begin_token(name_of({.token = token, .text = std::string(text)}, names_));
  tokens_.emplace_back();
}

ordered_json CompletionLogprobs::json() const {
  ordered_json sampled = ordered_json::array();
  ordered_json best = ordered_json::array();
  for (const auto& tokens : tokens_) {
    if (tokens.empty()) {
      sampled.push_back(nullptr);
      best.push_back(nullptr);
      continue;
    }
    sampled.push_back(tokens.front().logprob);
    ordered_json map = ordered_json::object();
    for (const TokenLogprob& one : tokens) map[name_of(one, names_)] = one.logprob;
    best.push_back(std::move(map));
  }
  return {{"text_offset", offsets_},
          {"token_logprobs", std::move(sampled)},
          {"tokens", names_of_tokens_},
          {"top_logprobs", std::move(best)}};
}

ordered_json prompt_logprobs_json(const std::vector<TokenId>& prompt,
                                  const std::vector<std::string>& pieces, std::uint32_t top) {
  ordered_json list = ordered_json::array({nullptr});
  for (std::size_t i = 1; i < std::min(prompt.size(), pieces.size()); ++i) {
    ordered_json entry = ordered_json::object();
    for (const TokenLogprob& one : prompt_logprobs(prompt[i], pieces[i], i, top)) {
      entry[fmt::format("{}", one.token)] = {
          {"logprob", one.logprob}, {"rank", one.rank}, {"decoded_token", one.text}};
    }
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace baton::sim
