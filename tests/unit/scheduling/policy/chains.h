// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "scheduling/policy/active_blocks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

namespace baton::scheduling {

// The chain of a prompt whose blocks have these contents: each hash goes on from the one before.
inline BlockChain chain_of(std::span<const std::uint64_t> contents) {
  std::vector<std::uint64_t> hashes;
  hashes.reserve(contents.size());
  std::uint64_t hash = 0x1234'5678'9ABC'DEF0ULL;
  for (const std::uint64_t content : contents) {
    hash = (hash ^ content) * 0x9E37'79B9'7F4A'7C15ULL;
    hash ^= hash >> 29;
    hashes.push_back(hash);
  }
  return std::make_shared<const std::vector<std::uint64_t>>(std::move(hashes));
}

inline BlockChain chain_of(std::initializer_list<std::uint64_t> contents) {
  return chain_of(std::span(contents.begin(), contents.size()));
}

// `count` blocks of which the first `common` are the same for all prompts, the rest for no other.
inline BlockChain chain_with(std::size_t common, std::size_t count, std::uint64_t prompt) {
  std::vector<std::uint64_t> contents(count, prompt);
  std::fill_n(contents.begin(), common, 0);
  return chain_of(contents);
}

// Up to `longest` blocks; prompts often begin, and sometimes are, equal.
inline BlockChain draw_chain(std::mt19937_64& random, std::size_t longest) {
  std::vector<std::uint64_t> contents(1 + random() % longest);
  for (std::uint64_t& content : contents) content = random() % 8 == 0 ? 1 + random() % 3 : 0;
  return chain_of(contents);
}

inline std::size_t common_blocks(std::span<const std::uint64_t> one,
                                 std::span<const std::uint64_t> other) {
  return static_cast<std::size_t>(std::ranges::mismatch(one, other).in1 - one.begin());
}

}  // namespace baton::scheduling
