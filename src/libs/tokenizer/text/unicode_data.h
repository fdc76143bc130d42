// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>

// Packed facts of the Unicode Character Database, as make_unicode_data.mjs writes them. unicode.h
// is the way to ask for them.
namespace baton::tokenizer::unicode_data {

struct NamedSet {
  std::string_view name;  // lower case, without spaces, `_` and `-`
  std::string_view members;
};

// Runs of one kind: length * 32 + CharKind.
extern const std::string_view kKinds;
// The same with GraphemeKind.
extern const std::string_view kGraphemeKinds;
// Maps: gap, stride, count, difference (zigzag).
extern const std::string_view kLowercase;
extern const std::string_view kCaseFolding;
// Code point, how many it folds to, those.
extern const std::string_view kLongCaseFolding;
// Sets: gap, length - 1.
extern const std::string_view kRustNumeric;
extern const std::string_view kUnicode8Punctuation;
extern const std::string_view kUnicode8NonspacingMark;
extern const std::string_view kUnicode8Control;
extern const std::string_view kUnicode9Mark;
extern const std::string_view kUnsafeNFC;
extern const std::string_view kUnsafeNFD;
extern const std::string_view kUnsafeNFKC;
extern const std::string_view kUnsafeNFKD;
extern const std::string_view kNotInUnicode9;
extern const NamedSet kNamedSets[];
extern const std::size_t kNamedSetCount;

}  // namespace baton::tokenizer::unicode_data
