// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/error.h"
#include "libs/tokenizer/post_processor.h"
#include "libs/tokenizer/tokenizer.h"
#include "libs/tokenizer/tokenizer_config.h"

#include <simdjson.h>

#include <memory>
#include <string>
#include <string_view>

namespace baton::tokenizer {

// Role. Puts a tokenizer together from its files, as transformers does: tokenizer.json first, then
//   what tokenizer_config.json adds and changes.
// Confinement. One thread, for the length of a load.
//
// Releases of transformers differ in what the configuration changes (tokenizer_release.h,
// docs/tokenizers.md).
class TokenizerLoader {
 public:
  using Loaded = Result<std::shared_ptr<const Tokenizer>>;

  // The parser's document may go once this returns.
  static Loaded from_file(simdjson::dom::element file, const TokenizerConfig& config,
                          const TokenizerOrigin& origin);
  // A tiktoken rank file: a token in base64 and its id on each line.
  static Loaded from_ranks(std::string_view ranks, const TokenizerConfig& config);

 private:
  using Parts = Tokenizer::Parts;

  static Result<void> read_pre_tokenizer(simdjson::dom::element json, const TokenizerConfig& config,
                                         Parts& parts);
  static Result<void> read_added_tokens(simdjson::dom::element json, Parts& parts);
  static void add_configured(const TokenizerConfig& config, Parts& parts);
  static PostProcessor configured_tokens(const TokenizerConfig& config, bool bos_by_default,
                                         const Parts& parts);
  static Loaded finish(const TokenizerConfig& config, std::unique_ptr<Parts> parts);
};

}  // namespace baton::tokenizer
