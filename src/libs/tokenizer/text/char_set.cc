// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/char_set.h"

#include <algorithm>

namespace baton::tokenizer {
namespace {

// Sorts ranges and joins those that meet.
void tidy(std::vector<CharSet::Range>& ranges) {
  std::ranges::sort(ranges, {}, &CharSet::Range::first);
  std::vector<CharSet::Range> joined;
  for (const CharSet::Range& range : ranges) {
    if (!joined.empty() && range.first <= joined.back().last + 1) {
      joined.back().last = std::max(joined.back().last, range.last);
    } else {
      joined.push_back(range);
    }
  }
  ranges = std::move(joined);
}

}  // namespace

CharSet::CharSet(std::initializer_list<Range> ranges) : ranges_(ranges) { tidy(ranges_); }

void CharSet::add(char32_t first, char32_t last) {
  // Most sets are read in order: then there is nothing to sort.
  if (ranges_.empty() || first > ranges_.back().last + 1) {
    ranges_.push_back({first, last});
  } else if (first >= ranges_.back().first) {
    ranges_.back().last = std::max(ranges_.back().last, last);
  } else {
    ranges_.push_back({first, last});
    tidy(ranges_);
  }
}

void CharSet::add(const CharSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  tidy(ranges_);
}

CharSet CharSet::complement() const {
  CharSet result;
  char32_t next = 0;
  for (const Range& range : ranges_) {
    if (range.first > next) {
      result.ranges_.push_back({next, range.first - 1});
    }
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) {
    result.ranges_.push_back({next, kLastCodePoint});
  }
  return result;
}

CharSet CharSet::intersection(const CharSet& other) const {
  CharSet result;
  auto a = ranges_.begin();
  auto b = other.ranges_.begin();
  while (a != ranges_.end() && b != other.ranges_.end()) {
    const char32_t first = std::max(a->first, b->first);
    const char32_t last = std::min(a->last, b->last);
    if (first <= last) {
      result.ranges_.push_back({first, last});
    }
    if (a->last < b->last) {
      ++a;
    } else {
      ++b;
    }
  }
  return result;
}

bool CharSet::contains(char32_t code) const {
  const auto after = std::ranges::upper_bound(ranges_, code, {}, &Range::first);
  return after != ranges_.begin() && code <= std::prev(after)->last;
}

std::uint32_t CharSet::size() const {
  std::uint32_t count = 0;
  for (const Range& range : ranges_) {
    count += range.last - range.first + 1;
  }
  return count;
}

}  // namespace baton::tokenizer
