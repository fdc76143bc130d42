// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/model.h"

#include "libs/tokenizer/bpe_model.h"
#include "libs/tokenizer/json_section.h"
#include "libs/tokenizer/unigram_model.h"
#include "libs/tokenizer/word_models.h"

#include <fmt/format.h>

namespace baton::tokenizer {
namespace {

// Old files do not name their model; it shows in what they have.
std::string_view guess_type(const JsonSection& model) {
  const auto vocabulary = model.find("vocab");
  if (vocabulary && vocabulary->is_array()) return "Unigram";
  if (model.find("merges")) return "BPE";
  return model.find("max_input_chars_per_word") ? "WordPiece" : "WordLevel";
}

}  // namespace

Result<std::unique_ptr<const Model>> Model::from_json(simdjson::dom::element json,
                                                      ByteLevel byte_level) {
  const auto section = JsonSection::of(json, "model");
  if (!section) return fail(section.error());
  const auto named = section->find_text("type");
  if (!named) return fail(named.error());
  const std::string_view type = named->value_or(guess_type(*section));
  if (type == "BPE") return BpeModel::from_json(json, byte_level);
  if (type == "Unigram") return UnigramModel::from_json(json);
  if (type == "WordPiece") return WordPieceModel::from_json(json);
  if (type == "WordLevel") return WordLevelModel::from_json(json);
  return fail(ErrorCode::InvalidFile, fmt::format("the model \"{}\" is not known to Baton", type));
}

}  // namespace baton::tokenizer
