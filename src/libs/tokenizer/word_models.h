// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/error.h"
#include "libs/tokenizer/vocabulary_model.h"

#include <memory>
#include <string>
#include <utility>

namespace baton::tokenizer {

// Role. A piece is one token, known or unknown.
// Confinement. Immutable; any thread.
class WordLevelModel final : public VocabularyModel {
 public:
  static Result<std::unique_ptr<const Model>> from_json(simdjson::dom::element json);

  void encode(std::span<const std::string_view> pieces, Workspace& workspace,
              TokenIds& ids) const override;
  bool complete() const override { return false; }

 private:
  WordLevelModel(Vocabulary vocabulary, TokenId unknown)
      : VocabularyModel(std::move(vocabulary)), unknown_(unknown) {}
  TokenId unknown_;
};

// Role. Takes the longest token that a piece begins with, then the longest that goes on, and so on;
//   a piece that does not work out is unknown as a whole.
// Confinement. Immutable; any thread.
class WordPieceModel final : public VocabularyModel {
 public:
  static Result<std::unique_ptr<const Model>> from_json(simdjson::dom::element json);

  void encode(std::span<const std::string_view> pieces, Workspace& workspace,
              TokenIds& ids) const override;
  bool complete() const override { return false; }

 private:
  struct Options {
    TokenId unknown;
    std::string prefix;  // of tokens that go on
    std::size_t most_characters;
  };
  WordPieceModel(Vocabulary vocabulary, Options options)
      : VocabularyModel(std::move(vocabulary)), options_(std::move(options)) {}
  bool encode_piece(std::string_view piece, Workspace& workspace, TokenIds& ids) const;

  Options options_;
};

}  // namespace baton::tokenizer
