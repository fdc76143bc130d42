// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/error.h"
#include "libs/tokenizer/text/char_set.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace baton::tokenizer {

// Dialect of regular expressions: the same signs mean different things.
enum class Dialect {
  Oniguruma,   // the Hugging Face tokenizers
  FancyRegex,  // tiktoken
};

// Role. A parsed regular expression: PCRE2's own syntax for sequences, and sets of code points for
//   characters. PCRE2 never sees a character: it knows another version of Unicode.
// Confinement. A value.
struct PatternParts {
  static constexpr std::size_t kNoSet = static_cast<std::size_t>(-1);

  struct Part {
    std::string syntax;        // empty where it is a set
    std::size_t set = kNoSet;  // place in `sets`
  };

  std::vector<Part> parts;
  std::vector<CharSet> sets;  // no two are equal
};

// An error names what could not be understood, or could not be said in PCRE2 with the same meaning.
Result<PatternParts> take_apart(std::string_view pattern, Dialect dialect);

}  // namespace baton::tokenizer
