// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/byte_trie.h"
#include "libs/tokenizer/error.h"
#include "libs/tokenizer/vocabulary_model.h"

#include <array>
#include <memory>
#include <utility>
#include <vector>

namespace baton::tokenizer {

// Role. Cuts a piece into the tokens whose scores add up to the most.
// Confinement. Immutable; any thread.
class UnigramModel final : public VocabularyModel {
 public:
  static Result<std::unique_ptr<const Model>> from_json(simdjson::dom::element json);

  void encode(std::span<const std::string_view> pieces, Workspace& workspace,
              TokenIds& ids) const override;
  bool complete() const override;

 private:
  // The best way to reach a place in the piece.
  struct Step {
    double score = 0;
    std::size_t begin = kUnreached;
    TokenId id = 0;
  };
  static constexpr std::size_t kUnreached = ~std::size_t{0};

  UnigramModel(Vocabulary words, std::vector<double> scores, TokenId unknown, bool byte_fallback);
  void encode_piece(std::string_view piece, std::vector<Step>& steps, TokenIds& ids) const;
  void append_unknown(std::string_view text, TokenIds& ids) const;

  ByteTrie tokens_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  TokenId unknown_;
  bool byte_fallback_;
  std::array<TokenId, 256> fallback_ = {};
};

}  // namespace baton::tokenizer
