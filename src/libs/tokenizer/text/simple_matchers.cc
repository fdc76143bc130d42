// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/simple_matchers.h"

#include "libs/tokenizer/text/utf8.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace baton::tokenizer {
namespace {

constexpr std::uint64_t kEach = 0x0101010101010101;  // times a byte: eight of it
constexpr std::uint64_t kHighBits = kEach * 0x80;

static_assert(std::endian::native == std::endian::little);

std::uint64_t eight_bytes(const char* at) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, at, sizeof bytes);
  return bytes;
}

std::size_t first_of(std::uint64_t high_bits) {
  return static_cast<std::size_t>(std::countr_zero(high_bits)) / 8;
}

// Spaces are close to each other: calling memchr for each of them takes longer.
void find_byte(std::string_view text, char byte, std::vector<Match>& matches) {
  const auto put = [&](std::size_t at) { matches.push_back({at, at + 1}); };
  const std::uint64_t wanted = kEach * static_cast<std::uint8_t>(byte);
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    const std::uint64_t other = eight_bytes(text.data() + at) ^ wanted;
    std::uint64_t found = ~(((other & ~kHighBits) + ~kHighBits) | other) & kHighBits;
    for (; found != 0; found &= found - 1) {
      put(at + first_of(found));
    }
  }
  for (; at < text.size(); ++at) {
    if (text[at] == byte) {
      put(at);
    }
  }
}

}  // namespace

void LiteralMatcher::find_all(std::string_view text, std::vector<Match>& matches) const {
  if (literal_.size() == 1) {
    find_byte(text, literal_[0], matches);
    return;
  }
  for (std::size_t at = text.find(literal_); at != std::string_view::npos;
       at = text.find(literal_, at + literal_.size())) {
    matches.push_back({at, at + literal_.size()});
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
  for (std::uint8_t byte = 0; byte < 0x80; ++byte) {
    if (may_begin_[byte]) {
      first_ascii_ = std::min(first_ascii_, byte);
      last_ascii_ = byte;
    }
  }
}

const char* RunMatcher::skip_plain(const char* at, const char* end) const {
  while (end - at >= 8) {
    const std::uint64_t bytes = eight_bytes(at);
    const std::uint64_t ascii = bytes & ~kHighBits;
    const std::uint64_t from_first = ascii + kEach * (0x80U - first_ascii_);
    const std::uint64_t beyond_last = ascii + kEach * (0x7FU - last_ascii_);
    const std::uint64_t stop = ((from_first & ~beyond_last) | bytes) & kHighBits;
    if (stop != 0) {
      return at + first_of(stop);
    }
    at += 8;
  }
  return at;
}

const char* RunMatcher::find(const char* at, const char* end) const {
  at = skip_plain(at, end);
  while (at < end) {
    if (!may_begin_[static_cast<std::uint8_t>(*at)]) {
      ++at;  // the other bytes of a character begin none
      if (at < end && static_cast<std::uint8_t>(*at) < 0x80) {
        at = skip_plain(at, end);
      }
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

}  // namespace baton::tokenizer
