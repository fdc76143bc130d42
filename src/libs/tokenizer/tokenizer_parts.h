// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/added_tokens.h"
#include "libs/tokenizer/decoder.h"
#include "libs/tokenizer/model.h"
#include "libs/tokenizer/post_processor.h"
#include "libs/tokenizer/text/normalizer.h"
#include "libs/tokenizer/text/pre_tokenizer.h"
#include "libs/tokenizer/tokenizer.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace baton::tokenizer {

// Parts of a tokenizer; the loaders fill it.
struct Tokenizer::Parts {
  std::unique_ptr<const Normalizer> normalizer = nullptr;       // null: text stays as it is
  std::unique_ptr<const PreTokenizer> pre_tokenizer = nullptr;  // null: all of it is one piece
  std::unique_ptr<const Model> model = nullptr;
  std::unique_ptr<const Decoder> decoder = nullptr;  // null: tokens with spaces between
  AddedTokens added = {};
  PostProcessor post_processor = {};
  std::vector<std::pair<std::string, std::string>> special_tokens = {};
  bool differs_by_release = false;
};

}  // namespace baton::tokenizer
