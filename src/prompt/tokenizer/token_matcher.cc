// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/tokenizer/token_matcher.h"

#include <algorithm>

namespace baton::prompt {

void TokenMatcher::add(std::string_view pattern, TokenId id) {
  const bool first = empty();
  patterns_.add(pattern, id);
  auto& begins = begins_[static_cast<unsigned char>(pattern.front())];
  if (begins == 0) only_begin_ = first ? std::optional(pattern.front()) : std::nullopt;
  begins = 1;
}

std::size_t TokenMatcher::next_candidate(std::string_view text, std::size_t from) const {
  // Most vocabularies have "<|…|>" and nothing else.
  if (only_begin_) return std::min(text.find(*only_begin_, from), text.size());
  const auto begins = [&](std::size_t at) { return begins_[static_cast<unsigned char>(text[at])]; };
  while (from + 8 <= text.size() &&
         (begins(from) | begins(from + 1) | begins(from + 2) | begins(from + 3) | begins(from + 4) |
          begins(from + 5) | begins(from + 6) | begins(from + 7)) == 0) {
    from += 8;
  }
  while (from < text.size() && begins(from) == 0) ++from;
  return from;
}

std::optional<TokenMatcher::Match> TokenMatcher::find(std::string_view text,
                                                      std::size_t from) const {
  if (empty()) return std::nullopt;
  for (std::size_t begin = next_candidate(text, from); begin < text.size();
       begin = next_candidate(text, begin + 1)) {
    std::optional<Match> longest;
    patterns_.for_each_at(text, begin,
                          [&](std::size_t end, TokenId id) { longest = {begin, end, id}; });
    if (longest) return longest;
  }
  return std::nullopt;
}

}  // namespace baton::prompt
