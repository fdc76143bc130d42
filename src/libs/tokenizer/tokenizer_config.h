// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/added_tokens.h"
#include "libs/tokenizer/error.h"
#include "libs/tokenizer/token.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::tokenizer {

// The parts of tokenizer_config.json that affect token ids and chat templates.
struct TokenizerConfig {
  // `added_tokens_decoder`, by id.
  std::vector<std::pair<TokenId, AddedToken>> added = {};
  // bos_token, eos_token … and what `extra_special_tokens` names, in the library's order.
  std::vector<std::pair<std::string, AddedToken>> named = {};
  // `additional_special_tokens`, and `extra_special_tokens` without names.
  std::vector<AddedToken> more_special = {};
  std::optional<bool> add_bos = {};
  std::optional<bool> add_eos = {};
  std::optional<bool> add_prefix_space = {};
  std::optional<bool> legacy = {};
  std::string tokenizer_class = {};         // without the ending "Fast"
  bool remote_code = false;                 // a class of the model's own
  std::optional<std::string> pattern = {};  // of a tiktoken rank file

  // An empty text is an empty file. A setting that would change ids in a way that is not known is
  // an error that names it.
  static Result<TokenizerConfig> from_json(std::string_view json);

  const AddedToken* find_named(std::string_view name) const;
  bool special(std::string_view content) const;
};

// An AddedToken as both files write it. `otherwise` has what is left out.
class JsonSection;
Result<AddedToken> read_added_token(const JsonSection& section, AddedToken otherwise);

}  // namespace baton::tokenizer
