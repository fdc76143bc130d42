// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/word_models.h"

#include "libs/tokenizer/json_section.h"
#include "libs/tokenizer/last_character.h"
#include "libs/tokenizer/text/utf8.h"
#include "libs/tokenizer/vocabulary_file.h"

#include <fmt/format.h>

#include <algorithm>

namespace baton::tokenizer {
namespace {

struct Words {
  Vocabulary vocabulary;
  TokenId unknown;
};

Result<Words> read_words(const JsonSection& section) {
  auto tokens = read_vocabulary(section, ByteLevel::No);
  if (!tokens) return fail(std::move(tokens.error()));
  const auto name = section.text("unk_token");
  if (!name) return fail(name.error());
  const auto unknown = tokens->vocabulary.find(*name);
  if (!unknown) {
    return section.wrong(fmt::format("the unk_token \"{}\" is not in the vocabulary", *name));
  }
  return Words{.vocabulary = std::move(tokens->vocabulary), .unknown = *unknown};
}

}  // namespace

Result<std::unique_ptr<const Model>> WordLevelModel::from_json(simdjson::dom::element json) {
  const auto section = JsonSection::of(json, "model");
  if (!section) return fail(section.error());
  const auto known = section->only({"type", "vocab", "unk_token"});
  if (!known) return fail(known.error());
  auto words = read_words(*section);
  if (!words) return fail(std::move(words.error()));
  return std::unique_ptr<const Model>(
      new WordLevelModel(std::move(words->vocabulary), words->unknown));
}

void WordLevelModel::encode(std::span<const std::string_view> pieces, Workspace& /*workspace*/,
                            TokenIds& ids) const {
  for (const std::string_view piece : pieces) {
    ids.push_back(vocabulary().find_or(piece, unknown_));
  }
}

Result<std::unique_ptr<const Model>> WordPieceModel::from_json(simdjson::dom::element json) {
  const auto section = JsonSection::of(json, "model");
  if (!section) return fail(section.error());
  const auto known = section->only(
      {"type", "vocab", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word"});
  if (!known) return fail(known.error());
  const auto prefix = section->find_text("continuing_subword_prefix");
  if (!prefix) return fail(prefix.error());
  std::uint32_t most = 100;
  if (section->find("max_input_chars_per_word")) {
    const auto number = section->number("max_input_chars_per_word");
    if (!number) return fail(number.error());
    most = *number;
  }
  auto words = read_words(*section);
  if (!words) return fail(std::move(words.error()));
  return std::unique_ptr<const Model>(new WordPieceModel(
      std::move(words->vocabulary), {.unknown = words->unknown,
                                     .prefix = std::string(prefix->value_or("##")),
                                     .most_characters = most}));
}

bool WordPieceModel::encode_piece(std::string_view piece, Workspace& workspace,
                                  TokenIds& ids) const {
  const auto characters =
      std::ranges::count_if(piece, [](char byte) { return !is_utf8_continuation(byte); });
  if (static_cast<std::size_t>(characters) > options_.most_characters) return false;
  const std::size_t longest = vocabulary().longest();
  for (std::size_t begin = 0; begin < piece.size();) {
    std::string& text = workspace.text;
    text.assign(begin > 0 ? options_.prefix : "");
    const std::size_t prefix = text.size();
    text.append(piece.substr(begin));
    while (text.size() > longest && text.size() > prefix) text.resize(last_character(text));
    TokenId id = Vocabulary::kNone;
    while (text.size() > prefix) {
      id = vocabulary().find_or(text, Vocabulary::kNone);
      if (id != Vocabulary::kNone) break;
      text.resize(last_character(text));
    }
    if (id == Vocabulary::kNone) return false;
    ids.push_back(id);
    begin += text.size() - prefix;
  }
  return true;
}

void WordPieceModel::encode(std::span<const std::string_view> pieces, Workspace& workspace,
                            TokenIds& ids) const {
  for (const std::string_view piece : pieces) {
    const std::size_t before = ids.size();
    if (encode_piece(piece, workspace, ids)) continue;
    ids.resize(before);
    ids.push_back(options_.unknown);
  }
}

}  // namespace baton::tokenizer
