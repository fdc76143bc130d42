// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/split.h"

#include <array>
#include <utility>

namespace baton::tokenizer {
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

// Role. Joins parts to pieces. Every part either begins a piece or is joined to the one before it;
//   the first begins one at 0 in any case.
// Lifetime. One call; the last piece is handed out with it.
class Joiner {
 public:
  Joiner(std::string_view text, std::vector<std::string_view>& pieces)
      : text_(text), pieces_(pieces) {}
  Joiner(const Joiner&) = delete;
  Joiner& operator=(const Joiner&) = delete;
  ~Joiner() { put(); }

  void add(const Part& part, bool join) {
    if (!join) {
      put();
      begin_ = part.begin;
    }
    end_ = part.end;
  }

 private:
  void put() {
    if (begin_ != end_) {
      pieces_.push_back(text_.substr(begin_, end_ - begin_));
    }
  }

  std::string_view text_;
  std::vector<std::string_view>& pieces_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

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
  Joiner joiner(text, pieces);
  bool previous = false;  // the part before is a match
  for_each_part(text, matches, invert, [&](const Part& part) {
    switch (behavior) {
      case SplitBehavior::Isolated:
        joiner.add(part, false);
        break;
      case SplitBehavior::Removed:
        if (!part.is_match) {
          joiner.add(part, false);
        }
        break;
      case SplitBehavior::Contiguous:
        joiner.add(part, part.is_match == previous);
        break;
      case SplitBehavior::MergedWithPrevious:
        joiner.add(part, part.is_match && !previous);
        break;
      case SplitBehavior::MergedWithNext:
        joiner.add(part, !part.is_match && previous);
        break;
    }
    previous = part.is_match;
  });
}

}  // namespace baton::tokenizer
