// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/text/char_set.h"
#include "libs/tokenizer/text/code_point_table.h"
#include "libs/tokenizer/text/matcher.h"

#include <array>
#include <cstdint>
#include <string>

namespace baton::tokenizer {

// Role. Finds a string. Confinement. Immutable; any thread.
class LiteralMatcher : public Matcher {
 public:
  // Requires: not empty.
  explicit LiteralMatcher(std::string literal) : literal_(std::move(literal)) {}

  void find_all(std::string_view text, std::vector<Match>& matches) const override;

 private:
  std::string literal_;
};

// Role. Finds runs of the members of a set: `[...]{1,most}`. Confinement. Immutable; any thread.
class RunMatcher : public Matcher {
 public:
  static constexpr std::size_t kNoLimit = static_cast<std::size_t>(-1);

  RunMatcher(const CharSet& set, std::size_t most);

  void find_all(std::string_view text, std::vector<Match>& matches) const override;

 private:
  bool is_member(char32_t code) const { return table_[code] != 0; }
  // At or behind `at`, and not behind the next member. Eight bytes at a time, where nothing but
  // ASCII without members is in the way.
  const char* skip_plain(const char* at, const char* end) const;
  // The next member at or behind `at`, or `end`.
  const char* find(const char* at, const char* end) const;
  // Behind the member at `at` and those that follow it.
  const char* skip(const char* at, const char* end) const;

  CodePointTable table_;
  std::array<bool, 256> may_begin_{};  // a member with that first byte
  std::uint8_t first_ascii_ = 0x7F;    // all members in ASCII are between these two
  std::uint8_t last_ascii_ = 0;
  std::size_t most_;
};

}  // namespace baton::tokenizer
