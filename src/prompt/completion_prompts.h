// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "prompt/tokenizer/token.h"
#include "wire/json_object.h"

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

namespace baton::prompt {

// As many as the pipeline sends on as branches of one request.
inline constexpr std::size_t kMostPrompts = 256;

// One prompt of a completion: text that is to be encoded, or ids taken as they are.
using CompletionPrompt = std::variant<std::string, TokenIds>;

// What `prompt` of a completion names: a text, ids, or a list of either. Ids are integers that fit;
// whether the model knows them is for the caller to say. None where `prompt` is absent or null.
Result<std::vector<CompletionPrompt>> completion_prompts(const wire::JsonObject& body);

}  // namespace baton::prompt
