// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/text/char_set.h"
#include "libs/tokenizer/text/pattern_reader.h"

#include <variant>

namespace baton::tokenizer {

enum class Anchor { TextStart, TextEnd, LastLineEnd, WordBoundary, NoWordBoundary };

// Reads the text after a '\' outside of brackets.
Result<std::variant<char32_t, CharSet, Anchor>> read_escape(PatternReader& reader);

// Reads the text after a '[', up to its ']'.
Result<CharSet> read_char_class(PatternReader& reader, bool ignore_case);

// \w outside of brackets. Oniguruma asks another table there, which has some of Latin-1's numbers.
CharSet lone_word_set(Dialect dialect);

}  // namespace baton::tokenizer
