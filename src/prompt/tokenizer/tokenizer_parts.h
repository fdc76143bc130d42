// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "prompt/text/normalizer.h"
#include "prompt/text/pre_tokenizer.h"
#include "prompt/tokenizer/added_tokens.h"
#include "prompt/tokenizer/decoder.h"
#include "prompt/tokenizer/model.h"
#include "prompt/tokenizer/post_processor.h"
#include "prompt/tokenizer/tokenizer.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace baton::prompt {

// What a tokenizer is made of; the loaders fill it.
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

}  // namespace baton::prompt
