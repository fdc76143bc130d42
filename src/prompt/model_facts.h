// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace baton::prompt {

// Facts from a model's files beside its tokenizer.
struct ModelFacts {
  // The longest context, as vLLM derives it: config.json with its rope scaling, and
  // tokenizer_config.json where that says less.
  std::optional<std::size_t> max_model_length;
  // Rows of the weights; they may exceed the tokenizer's tokens.
  std::optional<std::size_t> vocabulary_size;
  // Set for a model whose chats the engines write with code of their own, whatever its template
  // says: the `model_type` of config.json.
  std::optional<std::string> coded_renderer;
};

// Files that are not there say nothing; one that is not JSON is an error that names it.
Result<ModelFacts> model_facts(const std::filesystem::path& folder);

}  // namespace baton::prompt
