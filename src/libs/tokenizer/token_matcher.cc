// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/token_matcher.h"

#include <algorithm>

namespace baton::tokenizer {

void TokenMatcher::add(std::string_view pattern, TokenId id) {
  patterns_.add(pattern, id);
  const auto begin = static_cast<unsigned char>(pattern.front());
  if (begins_[begin] != 0) return;
  begins_[begin] = 1;
  all_begins_.push_back(begin);
  for (std::size_t at = 0; at < kFew; ++at) {
    few_begins_[at] = scan::ByteBlock{} + all_begins_[std::min(at, all_begins_.size() - 1)];
  }
}

template <std::size_t kCount>
std::size_t TokenMatcher::skip_blocks(std::string_view text, std::size_t from) const {
  for (; text.size() - from >= sizeof(scan::ByteBlock); from += sizeof(scan::ByteBlock)) {
    const scan::ByteBlock bytes = scan::load_block(text.data() + from);
    auto hits = bytes == few_begins_[0];
    for (std::size_t at = 1; at < kCount; ++at) hits |= bytes == few_begins_[at];
    if (const std::size_t first = scan::first_hit(hits); first < sizeof bytes) return from + first;
  }
  return from;
}

std::size_t TokenMatcher::next_candidate(std::string_view text, std::size_t from) const {
  // Most vocabularies have "<|…|>" and nothing else.
  if (all_begins_.size() == 1) {
    return std::min(text.find(static_cast<char>(all_begins_[0]), from), text.size());
  }
  if (all_begins_.size() <= kFew / 2) {
    from = skip_blocks<kFew / 2>(text, from);
  } else if (all_begins_.size() <= kFew) {
    from = skip_blocks<kFew>(text, from);
  }
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

}  // namespace baton::tokenizer
