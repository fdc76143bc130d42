// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/text/split.h"

#include <algorithm>
#include <array>
#include <utility>

namespace baton::prompt {
namespace {

struct Part {
  std::size_t begin;
  std::size_t end;
  bool is_match;
};

// Calls `visit` for each match and for what lies between, in order. Only matches may be empty.
template <class Visit>
void for_each_part(std::string_view text, std::span<const Match> matches, bool invert,
                   Visit visit) {
  std::size_t at = 0;
  for (const Match& match : matches) {
    if (at != match.begin) {
      visit(Part{at, match.begin, invert});
    }
    visit(Part{match.begin, match.end, !invert});
    at = match.end;
  }
  if (at != text.size()) {
    visit(Part{at, text.size(), invert});
  }
}

// Role. Joins parts to pieces: a part either begins a piece or goes to the one before it.
class Joiner {
 public:
  void begin(const Part& part) { joined_.push_back({part.begin, part.end}); }
  void join(const Part& part) {
    if (joined_.empty()) {
      begin(part);
      return;
    }
    joined_.back().begin = std::min(joined_.back().begin, part.begin);
    joined_.back().end = std::max(joined_.back().end, part.end);
  }
  std::span<const Match> joined() const { return joined_; }
  void reverse() { std::ranges::reverse(joined_); }

 private:
  std::vector<Match> joined_;
};

void put(std::string_view text, std::size_t begin, std::size_t end,
         std::vector<std::string_view>& pieces) {
  if (begin != end) {
    pieces.push_back(text.substr(begin, end - begin));
  }
}

void put_all(std::string_view text, std::span<const Match> joined,
             std::vector<std::string_view>& pieces) {
  for (const Match& piece : joined) {
    put(text, piece.begin, piece.end, pieces);
  }
}

}  // namespace

std::optional<SplitBehavior> split_behavior(std::string_view name) {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, SplitBehavior>>({
      {"Removed", SplitBehavior::Removed},
      {"Isolated", SplitBehavior::Isolated},
      {"MergedWithPrevious", SplitBehavior::MergedWithPrevious},
      {"MergedWithNext", SplitBehavior::MergedWithNext},
      {"Contiguous", SplitBehavior::Contiguous},
  });
  for (const auto& [known, behavior] : kNames) {
    if (name == known) {
      return behavior;
    }
  }
  return std::nullopt;
}

void split_at(std::string_view text, std::span<const Match> matches, SplitBehavior behavior,
              bool invert, std::vector<std::string_view>& pieces) {
  Joiner joiner;
  bool previous_match = false;
  switch (behavior) {
    case SplitBehavior::Isolated:
      for_each_part(text, matches, invert,
                    [&](const Part& part) { put(text, part.begin, part.end, pieces); });
      return;
    case SplitBehavior::Removed:
      for_each_part(text, matches, invert, [&](const Part& part) {
        if (!part.is_match) {
          put(text, part.begin, part.end, pieces);
        }
      });
      return;
    case SplitBehavior::Contiguous:
      for_each_part(text, matches, invert, [&](const Part& part) {
        part.is_match == previous_match ? joiner.join(part) : joiner.begin(part);
        previous_match = part.is_match;
      });
      break;
    case SplitBehavior::MergedWithPrevious:
      for_each_part(text, matches, invert, [&](const Part& part) {
        part.is_match && !previous_match ? joiner.join(part) : joiner.begin(part);
        previous_match = part.is_match;
      });
      break;
    case SplitBehavior::MergedWithNext: {
      std::vector<Part> parts;
      for_each_part(text, matches, invert, [&](const Part& part) { parts.push_back(part); });
      for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        part->is_match && !previous_match ? joiner.join(*part) : joiner.begin(*part);
        previous_match = part->is_match;
      }
      joiner.reverse();
      break;
    }
  }
  put_all(text, joiner.joined(), pieces);
}

}  // namespace baton::prompt
