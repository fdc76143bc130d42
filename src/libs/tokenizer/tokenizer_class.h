// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/tokenizer_config.h"

#include <simdjson.h>

#include <optional>
#include <string>
#include <string_view>

namespace baton::tokenizer {

// Changes to a tokenizer's files by the class that transformers chooses for it.

// transformers 4: whether the class puts the special tokens of the configuration in the place of the
// file's post-processor. Its defaults are then a bos_token and no eos_token.
bool sets_special_tokens(const TokenizerConfig& config);

// transformers 5: the pre-tokenizer, as JSON, of a class that is built anew from the file's vocabulary
// and merges, without a normalizer; nullopt where the file's own parts are used. `model_type` is that
// of config.json: for many of them transformers knows that the configured class is wrong. Only
// LlamaTokenizer and GPT2Tokenizer are known here: the files of other such classes hold what the class
// builds. A file of bytes is never read as Llama's, nor the other way round: no such model would be of
// use.
std::optional<std::string> rebuilt_pre_tokenizer(const TokenizerConfig& config,
                                                 std::string_view model_type,
                                                 simdjson::dom::element file);

}  // namespace baton::tokenizer
