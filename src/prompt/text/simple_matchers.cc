// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/text/simple_matchers.h"

#include "prompt/text/utf8.h"

#include <cstring>

namespace baton::prompt {

void LiteralMatcher::find_all(std::string_view text, std::vector<Match>& matches) const {
  const char* const start = text.data();
  const char* const end = start + text.size();
  for (const char* at = start; at < end;) {
    const auto rest = static_cast<std::size_t>(end - at);
    const void* found = literal_.size() == 1 ? std::memchr(at, literal_[0], rest)
                                             : memmem(at, rest, literal_.data(), literal_.size());
    if (found == nullptr) {
      return;
    }
    const auto begin = static_cast<std::size_t>(static_cast<const char*>(found) - start);
    matches.push_back({begin, begin + literal_.size()});
    at = start + begin + literal_.size();
  }
}

RunMatcher::RunMatcher(const CharSet& set, std::size_t most) : table_(set), most_(most) {}

const char* RunMatcher::skip(const char* at, const char* end, bool members,
                             std::size_t most) const {
  for (std::size_t count = 0; at < end && count < most; ++count) {
    const auto [code, size] = decode_utf8(at);
    if ((table_[code] != 0) != members) {
      break;
    }
    at += size;
  }
  return at;
}

void RunMatcher::find_all(std::string_view text, std::vector<Match>& matches) const {
  const char* const start = text.data();
  const char* const end = start + text.size();
  for (const char* at = skip(start, end, false, kNoLimit); at < end;
       at = skip(at, end, false, kNoLimit)) {
    const char* const begin = at;
    at = skip(at, end, true, most_);
    matches.push_back(
        {static_cast<std::size_t>(begin - start), static_cast<std::size_t>(at - start)});
  }
}

}  // namespace baton::prompt
