// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/error.h"
#include "libs/tokenizer/json_section.h"
#include "libs/tokenizer/model.h"
#include "libs/tokenizer/vocabulary.h"

namespace baton::tokenizer {

// The tokens of a file. A byte-level file's are translated into the bytes that they stand for; the
// few that stand for no bytes (no piece of text can ever be one) are kept apart.
struct WrittenVocabulary {
  Vocabulary vocabulary;
  Vocabulary unwritable;
};

// Reads `vocab`, an object of tokens and ids.
Result<WrittenVocabulary> read_vocabulary(const JsonSection& model, ByteLevel byte_level);

// Adds a token; an error says why it cannot be one.
Result<void> add_token(const JsonSection& model, Vocabulary& vocabulary, std::string_view text,
                       TokenId id);

}  // namespace baton::tokenizer
