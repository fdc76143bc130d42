// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/model.h"
#include "libs/tokenizer/vocabulary.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace baton::tokenizer {

// A model whose tokens are looked up as the file writes them.
class VocabularyModel : public Model {
 public:
  std::optional<TokenId> find(std::string_view token) const override {
    return vocabulary_.find(token);
  }
  std::optional<std::string> token(TokenId id) const override {
    if (!vocabulary_.has(id)) return std::nullopt;
    return std::string(vocabulary_.text(id));
  }
  std::size_t size() const override { return vocabulary_.size(); }

 protected:
  explicit VocabularyModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  Vocabulary vocabulary_;
};

}  // namespace baton::tokenizer
