// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/added_tokens.h"

#include "libs/tokenizer/last_character.h"
#include "libs/tokenizer/text/unicode.h"
#include "libs/tokenizer/text/utf8.h"

#include <algorithm>

namespace baton::tokenizer {
namespace {

std::size_t space_at_end(std::string_view text) {
  std::size_t length = 0;
  while (!text.empty()) {
    const std::size_t last = last_character(text);
    if (!white_space().contains(decode_utf8(text.data() + last).code)) break;
    length += text.size() - last;
    text = text.substr(0, last);
  }
  return length;
}

std::size_t space_at_start(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size()) {
    const auto [code, size] = decode_utf8(text.data() + length);
    if (!white_space().contains(code)) break;
    length += size;
  }
  return length;
}

// Also in the way that some vocabularies write it.
bool is_space(std::string_view text) {
  constexpr char32_t kSpaceMark = 0x2581;
  while (!text.empty()) {
    const auto [code, size] = decode_utf8(text.data());
    if (code != kSpaceMark && !white_space().contains(code)) return false;
    text.remove_prefix(size);
  }
  return true;
}

bool is_word_character(const char* at) {
  const char32_t code = decode_utf8(at).code;
  const bool joins = code == 0x200C || code == 0x200D;  // Rust's \w has these two as well
  return joins || word_characters().contains(code);
}

bool inside_word(std::string_view text, const TokenMatcher::Match& match) {
  const std::string_view before = text.substr(0, match.begin);
  const std::string_view after = text.substr(match.end);
  return (!before.empty() && is_word_character(before.data() + last_character(before))) ||
         (!after.empty() && is_word_character(after.data()));
}

}  // namespace

void AddedTokens::add(const AddedToken& token, const Model& model) {
  std::optional<TokenId> id = find(token.content);
  if (!id) id = model.find(token.content);
  if (!id) {
    const auto size = static_cast<TokenId>(model.size());
    const bool above = !tokens_.empty() && (highest_ >= size || size == 0);
    id = above ? highest_ + 1 : size;
  }
  add_as(token, *id);
}

void AddedTokens::add_as(const AddedToken& token, TokenId id) {
  if (token.content.empty()) return;
  if (token.special) specials_.insert(token.content);
  if (!tokens_.contains(id)) order_.push_back(id);
  ids_.insert_or_assign(token.content, id);
  tokens_.insert_or_assign(id, token);
  highest_ = std::max(highest_, id);
}

void AddedTokens::finish(const Normalizer* normalizer) {
  normalizes_ = normalizer != nullptr;
  // Two tokens can look alike once they are normalized: special ones come first, as in the library.
  for (const bool special : {true, false}) {
    for (const TokenId id : order_) {
      if (tokens_.at(id).special == special) look_for(id, normalizer);
    }
  }
  find_borders();
}

// Whether it stays what it is, and changes nothing else, whatever follows it.
bool AddedTokens::may_be_border(const AddedToken& token) const {
  if ((token.normalized && normalizes_) || is_space(token.content)) return false;
  if (!look_around_) return true;
  // A token in the white space behind it would count as well.
  if (token.single_word || (token.rstrip && begin_spaced_)) return false;
  // Those that are looked for first may take it, or part of it, for the sake of what follows.
  if (token.normalized && first_look_behind_) return false;
  if (token.normalized && first_take_before_ && space_at_end(token.content) > 0) return false;
  // Others may look at what is in front of them.
  return !is_word_character(token.content.data() + last_character(token.content));
}

bool AddedTokens::may_end_at(std::string_view text, std::size_t at) const {
  if (!take_space_ || at >= text.size() || is_utf8_continuation(text[at])) return true;
  return !white_space().contains(decode_utf8(text.data() + at).code);
}

// No token may reach across the end of a border: none may begin with an end of it and go on, nor
// hold it and go on.
void AddedTokens::find_borders() {
  const ByteTrie& raw = raw_.patterns();
  const ByteTrie& normalized = normalized_.patterns();
  borders_.resize(order_.empty() ? 0 : std::size_t{highest_} + 1);
  for (const TokenId id : order_) {
    const AddedToken& token = tokens_.at(id);
    if (!may_be_border(token)) continue;
    bool crossed = false;
    for (std::string_view end = token.content; !end.empty(); end.remove_prefix(1)) {
      crossed = crossed || raw.goes_beyond(end) || normalized.goes_beyond(end);
    }
    borders_[id] = !crossed;
  }
  for (const TokenId id : order_) {
    const std::string& content = tokens_.at(id).content;
    const auto note = [&](std::size_t end, TokenId held) {
      if (end < content.size()) borders_[held] = false;
    };
    for (std::size_t at = 0; at < content.size(); ++at) {
      raw.for_each_at(content, at, note);
      normalized.for_each_at(content, at, note);
    }
  }
}

void AddedTokens::look_for(TokenId id, const Normalizer* normalizer) {
  const AddedToken& token = tokens_.at(id);
  if (token.single_word || token.lstrip || token.rstrip) look_around_ = true;
  if (token.lstrip || token.rstrip) lose_space_ = true;
  if (token.rstrip) take_space_ = true;
  if (space_at_start(token.content) > 0) begin_spaced_ = true;
  if (!token.normalized) {
    if (token.single_word) first_look_behind_ = true;
    if (token.lstrip) first_take_before_ = true;
    raw_.add(token.content, id);
    return;
  }
  std::string buffer;
  const std::string_view pattern =
      normalizer == nullptr ? token.content : normalizer->apply(token.content, buffer);
  if (pattern != token.content) shown_.emplace(id, pattern);
  if (!pattern.empty()) normalized_.add(pattern, id);
}

std::optional<AddedTokens::Reach> AddedTokens::look_around(std::string_view text,
                                                           const TokenMatcher::Match& match) const {
  const AddedToken& token = tokens_.at(match.id);
  if (token.single_word && inside_word(text, match)) return std::nullopt;
  Reach reach{match.begin, match.end};
  if (token.lstrip) reach.begin -= space_at_end(text.substr(0, reach.begin));
  if (token.rstrip) reach.end += space_at_start(text.substr(reach.end));
  return reach;
}

std::optional<TokenId> AddedTokens::find(std::string_view content) const {
  const auto found = ids_.find(content);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::string_view> AddedTokens::content(TokenId id) const {
  if (const auto shown = shown_.find(id); shown != shown_.end()) return shown->second;
  const auto token = tokens_.find(id);
  if (token == tokens_.end()) return std::nullopt;
  return token->second.content;
}

std::size_t AddedTokens::beyond(const Model& model) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(ids_, [&](const auto& token) { return !model.find(token.first); }));
}

}  // namespace baton::tokenizer
