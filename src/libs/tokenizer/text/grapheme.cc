// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/grapheme.h"

#include "libs/tokenizer/text/unicode.h"
#include "libs/tokenizer/text/utf8.h"

#include <cstdint>

namespace baton::tokenizer {
namespace {

constexpr char32_t kFirstSyllable = 0xAC00;
constexpr char32_t kLastSyllable = 0xD7A3;
constexpr char32_t kSyllablesOfVowel = 28;

GraphemeKind kind_of(char32_t code) {
  if (code >= kFirstSyllable && code <= kLastSyllable) {
    return (code - kFirstSyllable) % kSyllablesOfVowel == 0 ? GraphemeKind::SyllableWithVowel
                                                            : GraphemeKind::SyllableWithFinal;
  }
  return GraphemeKind{grapheme_table()[code]};
}

bool extends(GraphemeKind kind) {
  return kind == GraphemeKind::Extend || kind == GraphemeKind::Linker ||
         kind == GraphemeKind::NonJoiner;
}

bool is_control(GraphemeKind kind) {
  return kind == GraphemeKind::CarriageReturn || kind == GraphemeKind::LineFeed ||
         kind == GraphemeKind::Control;
}

// GB6 to GB8.
bool joins_hangul(GraphemeKind before, GraphemeKind kind) {
  using enum GraphemeKind;
  switch (before) {
    case Leading:
      return kind == Leading || kind == Vowel || kind == SyllableWithVowel ||
             kind == SyllableWithFinal;
    case Vowel:
    case SyllableWithVowel:
      return kind == Vowel || kind == Trailing;
    case Trailing:
    case SyllableWithFinal:
      return kind == Trailing;
    default:
      return false;
  }
}

// Role. The facts of a cluster that decide where it ends. Lifetime. One cluster.
class Cluster {
 public:
  explicit Cluster(GraphemeKind first) { remember(first); }

  // Whether the next character still belongs to it.
  bool takes(GraphemeKind kind) const {
    using enum GraphemeKind;
    if (before_ == CarriageReturn && kind == LineFeed) {  // GB3
      return true;
    }
    if (is_control(before_) || is_control(kind)) {  // GB4, GB5
      return false;
    }
    return joins_hangul(before_, kind) || extends(kind) || kind == ZeroWidthJoiner ||
           kind == SpacingMark ||                                         // GB9, GB9a
           before_ == Prepend ||                                          // GB9b
           (kind == Consonant && conjunct_ == Conjunct::Linked) ||        // GB9c
           (kind == Pictograph && pictograph_ == Pictographs::Joined) ||  // GB11
           (kind == RegionalIndicator && odd_indicators_);                // GB12, GB13
  }

  void remember(GraphemeKind kind) {
    using enum GraphemeKind;
    if (kind == Consonant) {
      conjunct_ = Conjunct::Open;
    } else if (kind == Linker && conjunct_ != Conjunct::None) {
      conjunct_ = Conjunct::Linked;
    } else if (kind != Extend && kind != ZeroWidthJoiner) {
      conjunct_ = Conjunct::None;
    }
    if (kind == Pictograph) {
      pictograph_ = Pictographs::Open;
    } else if (kind == ZeroWidthJoiner && pictograph_ == Pictographs::Open) {
      pictograph_ = Pictographs::Joined;
    } else if (!extends(kind) || pictograph_ == Pictographs::Joined) {
      pictograph_ = Pictographs::None;
    }
    odd_indicators_ = kind == RegionalIndicator && !odd_indicators_;
    before_ = kind;
  }

 private:
  enum class Conjunct { None, Open, Linked };
  enum class Pictographs { None, Open, Joined };

  GraphemeKind before_ = GraphemeKind::Other;
  Conjunct conjunct_ = Conjunct::None;
  Pictographs pictograph_ = Pictographs::None;
  bool odd_indicators_ = false;
};

}  // namespace

std::size_t grapheme_end(std::string_view text, std::size_t start) {
  const auto [first, first_size] = decode_utf8(text.data() + start);
  Cluster cluster(kind_of(first));
  std::size_t at = start + first_size;
  while (at < text.size()) {
    const auto [code, size] = decode_utf8(text.data() + at);
    const GraphemeKind kind = kind_of(code);
    if (!cluster.takes(kind)) {
      break;
    }
    cluster.remember(kind);
    at += size;
  }
  return at;
}

}  // namespace baton::tokenizer
