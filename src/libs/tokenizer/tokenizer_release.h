// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstdint>
#include <string>

namespace baton::tokenizer {

// Which major release of transformers a tokenizer's files are read as. The two differ where
// tokenizer_config.json says otherwise than tokenizer.json:
//   V4. tokenizer.json is used as it is. `add_bos_token` and `add_eos_token` replace its
//       post-processor for the classes of Llama, CodeLlama, Gemma and Cohere.
//   V5. Neither of the two counts beside a tokenizer.json. Some classes are built anew from its
//       vocabulary and merges, with a normalizer and a pre-tokenizer of their own.
enum class Transformers : std::uint8_t { V4, V5 };

// Facts besides the tokenizer's files that decide how these are read.
struct TokenizerOrigin {
  Transformers transformers = Transformers::V5;
  std::string model_type = {};  // of config.json
};

}  // namespace baton::tokenizer
