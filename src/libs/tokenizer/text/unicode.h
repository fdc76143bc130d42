// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/text/char_set.h"
#include "libs/tokenizer/text/code_point_table.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace baton::tokenizer {

// The general category of a code point in Unicode 16, with the white space among the control
// characters told apart. Regular expressions of tokenizers ask for little else.
enum class CharKind : std::uint8_t {
  UppercaseLetter,
  LowercaseLetter,
  TitlecaseLetter,
  ModifierLetter,
  OtherLetter,
  NonspacingMark,
  SpacingMark,
  EnclosingMark,
  DecimalNumber,
  LetterNumber,
  OtherNumber,
  ConnectorPunctuation,
  DashPunctuation,
  OpenPunctuation,
  ClosePunctuation,
  InitialPunctuation,
  FinalPunctuation,
  OtherPunctuation,
  MathSymbol,
  CurrencySymbol,
  ModifierSymbol,
  OtherSymbol,
  SpaceSeparator,
  LineSeparator,
  ParagraphSeparator,
  Control,
  Format,
  Surrogate,
  PrivateUse,
  Unassigned,
  ControlSpace,  // U+0009 to U+000D and U+0085
};
inline constexpr unsigned kCharKinds = 31;

// A bit for each kind.
using KindSet = std::uint32_t;
constexpr KindSet kind_range(CharKind first, CharKind last) {
  return (KindSet{2} << static_cast<unsigned>(last)) - (KindSet{1} << static_cast<unsigned>(first));
}
constexpr KindSet one_kind(CharKind kind) { return kind_range(kind, kind); }

inline constexpr KindSet kAnyLetter = kind_range(CharKind::UppercaseLetter, CharKind::OtherLetter);
inline constexpr KindSet kAnyMark = kind_range(CharKind::NonspacingMark, CharKind::EnclosingMark);
inline constexpr KindSet kAnyNumber = kind_range(CharKind::DecimalNumber, CharKind::OtherNumber);
inline constexpr KindSet kAnyPunctuation =
    kind_range(CharKind::ConnectorPunctuation, CharKind::OtherPunctuation);
inline constexpr KindSet kAnySymbol = kind_range(CharKind::MathSymbol, CharKind::OtherSymbol);
inline constexpr KindSet kAnySpace =
    kind_range(CharKind::SpaceSeparator, CharKind::ParagraphSeparator) |
    one_kind(CharKind::ControlSpace);

// The CharKind of each code point.
const CodePointTable& kind_table();

// Kinds of characters that decide where a grapheme ends, in Unicode 17.
enum class GraphemeKind : std::uint8_t {
  Other,
  CarriageReturn,
  LineFeed,
  Control,
  Extend,
  ZeroWidthJoiner,
  RegionalIndicator,
  Prepend,
  SpacingMark,
  Leading,  // of a Hangul syllable, as the two that follow
  Vowel,
  Trailing,
  SyllableWithFinal,
  Pictograph,
  Consonant,          // of an Indic conjunct
  Linker,             // of an Indic conjunct; extends
  NonJoiner,          // extends, but no conjunct
  SyllableWithVowel,  // not in the table, which has SyllableWithFinal for all
};
const CodePointTable& grapheme_table();

// The members of \p{name}; the name is compared without case, spaces, `_` and `-`. Nothing where it
// is not known.
std::optional<CharSet> property_set(std::string_view name);
CharSet kind_members(KindSet kinds);

// White space, as \s and Rust's char::is_whitespace have it.
const CharSet& white_space();
// Alphabetic, marks, decimal numbers and connector punctuation.
const CharSet& word_characters();

// Sets of other Unicode versions, for the parts of the Hugging Face tokenizers built with them.
CharSet rust_numeric();          // 17, Rust's char::is_numeric
CharSet unicode8_punctuation();  // with all of ASCII's
CharSet unicode8_nonspacing_mark();
CharSet unicode8_control();  // Cc, Cf and Co
CharSet unicode9_mark();
CharSet not_in_unicode9();  // marks and decomposing characters assigned later
enum class NormalForm : std::uint8_t { C, D, Kc, Kd };
// Characters that the form may change or that may join with the character before.
CharSet unsafe_for(NormalForm form);

// Role. Maps of characters to others for letters of other case.
// Confinement. Immutable; any thread.
class CaseMaps {
 public:
  static const CaseMaps& instance();

  // Rust's char::to_lowercase but for U+0130, which has two characters.
  char32_t lower(char32_t code) const;
  // Those that `lower` changes.
  CharSet with_lower() const;
  // Every character that differs from a member in case only, and the members.
  CharSet closure(const CharSet& set) const;
  char32_t fold(char32_t code) const;
  // Some characters equal several others without their case (U+00DF and `ss`).
  const std::unordered_map<char32_t, std::u32string>& long_folds() const { return long_folds_; }

 private:
  CaseMaps();

  std::unordered_map<char32_t, char32_t> lower_;
  std::unordered_map<char32_t, char32_t> fold_;
  std::unordered_map<char32_t, std::vector<char32_t>> unfold_;
  std::unordered_map<char32_t, std::u32string> long_folds_;
};

}  // namespace baton::tokenizer
