// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace baton::tokenizer {

inline constexpr char32_t kLastCodePoint = 0x10FFFF;

// Role. A set of code points, as sorted ranges that do not touch.
// Confinement. A value.
class CharSet {
 public:
  struct Range {
    char32_t first;
    char32_t last;
    bool operator==(const Range&) const = default;
  };

  CharSet() = default;
  CharSet(std::initializer_list<Range> ranges);
  static CharSet all() { return {{0, kLastCodePoint}}; }
  static CharSet of(char32_t code) { return {{code, code}}; }

  void add(char32_t first, char32_t last);
  void add(const CharSet& other);
  CharSet complement() const;
  CharSet intersection(const CharSet& other) const;

  bool contains(char32_t code) const;
  bool empty() const { return ranges_.empty(); }
  std::uint32_t size() const;
  const std::vector<Range>& ranges() const { return ranges_; }
  bool operator==(const CharSet&) const = default;

 private:
  std::vector<Range> ranges_;
};

}  // namespace baton::tokenizer
