// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/text/simple_matchers.h"

#include "prompt/text/utf8.h"

#include <algorithm>
#include <cstdint>
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

RunMatcher::RunMatcher(const CharSet& set, std::size_t most) : table_(set), most_(most) {
  const auto first_byte = [](char32_t code) {
    std::string bytes;
    append_utf8(bytes, code);
    return static_cast<std::uint8_t>(bytes[0]);
  };
  for (const auto& [first, last] : set.ranges()) {
    const auto begin = may_begin_.begin() + first_byte(first);
    std::fill(begin, may_begin_.begin() + first_byte(last) + 1, true);
  }
  std::fill(may_begin_.begin() + 0x80, may_begin_.begin() + 0xC0, false);  // the other bytes
}

const char* RunMatcher::find(const char* at, const char* end) const {
  while (at < end) {
    if (!may_begin_[static_cast<std::uint8_t>(*at)]) {
      ++at;  // other bytes of a character begin none
      continue;
    }
    const auto [code, size] = decode_utf8(at);
    if (is_member(code)) {
      break;
    }
    at += size;
  }
  return at;
}

const char* RunMatcher::skip(const char* at, const char* end) const {
  for (std::size_t count = 0; at < end && count < most_; ++count) {
    const auto [code, size] = decode_utf8(at);
    if (!is_member(code)) {
      break;
    }
    at += size;
  }
  return at;
}

void RunMatcher::find_all(std::string_view text, std::vector<Match>& matches) const {
  const char* const start = text.data();
  const char* const end = start + text.size();
  for (const char* at = find(start, end); at < end; at = find(at, end)) {
    const char* const begin = at;
    at = skip(at, end);
    matches.push_back(
        {static_cast<std::size_t>(begin - start), static_cast<std::size_t>(at - start)});
  }
}

}  // namespace baton::prompt
