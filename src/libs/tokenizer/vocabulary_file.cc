// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/vocabulary_file.h"

#include "libs/tokenizer/text/byte_alphabet.h"

#include <fmt/format.h>

#include <string>

namespace baton::tokenizer {

Result<void> add_token(const JsonSection& model, Vocabulary& vocabulary, std::string_view text,
                       TokenId id) {
  switch (vocabulary.add(text, id)) {
    case Vocabulary::Added::Yes:
      return {};
    case Vocabulary::Added::DuplicateText:
      return model.wrong(fmt::format("\"vocab\" has the token of id {} twice", id));
    case Vocabulary::Added::DuplicateId:
      return model.wrong(fmt::format("\"vocab\" has two tokens of id {}", id));
    case Vocabulary::Added::IdTooLarge:
      break;
  }
  return model.wrong(
      fmt::format("\"vocab\" has the id {}; Baton takes ids below {}", id, Vocabulary::kIdLimit));
}

Result<WrittenVocabulary> read_vocabulary(const JsonSection& model, ByteLevel byte_level) {
  const auto tokens = model.section("vocab");
  if (!tokens) return fail(tokens.error());
  WrittenVocabulary read{.vocabulary = Vocabulary(tokens->object().size()), .unwritable = {}};
  std::string bytes;
  for (const auto& [written, value] : tokens->object()) {
    std::uint64_t id = 0;
    if (value.get(id) != simdjson::SUCCESS || id >= Vocabulary::kIdLimit) {
      return model.wrong(fmt::format("\"vocab\" has an id that is no whole number below {}",
                                     Vocabulary::kIdLimit));
    }
    std::string_view text = written;
    Vocabulary* target = &read.vocabulary;
    if (byte_level == ByteLevel::Yes) {
      bytes.clear();
      if (ByteAlphabet::instance().read(written, bytes)) {
        text = bytes;
      } else {
        target = &read.unwritable;
      }
    }
    const auto added = add_token(model, *target, text, static_cast<TokenId>(id));
    if (!added) return fail(added.error());
  }
  for (TokenId id = 0; id < read.unwritable.id_end(); ++id) {
    if (read.unwritable.has(id) && read.vocabulary.has(id)) {
      return model.wrong(fmt::format("\"vocab\" has two tokens of id {}", id));
    }
  }
  return read;
}

}  // namespace baton::tokenizer
