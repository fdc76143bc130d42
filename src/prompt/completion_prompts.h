// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "libs/tokenizer/token.h"
#include "wire/json_object.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace baton::prompt {

// The most prompts that the pipeline sends on as branches of one request; engines take more.
inline constexpr std::size_t kMostPrompts = 256;

// One prompt of a completion: text that is to be encoded, or ids taken as they are.
using CompletionPrompt = std::variant<std::string, tokenizer::TokenIds>;

// Reads `prompt` of a completion: a text, ids, or a list of either. Ids are integers that fit; the
// caller checks whether the model knows them. None if `prompt` is absent or null. Requires: not too
// many of them.
Result<std::vector<CompletionPrompt>> completion_prompts(const wire::JsonObject& body);

// Why that is not all that the engine will see, or too much to look at; empty: neither.
std::string completion_inexact(const wire::JsonObject& body);

// The prompts of a completion that gives all of them as token ids; none where it does not.
std::vector<tokenizer::TokenIds> given_token_ids(const wire::JsonObject& body);

// It names more than kMostPrompts.
bool has_too_many_prompts(const wire::JsonObject& body);

// Reads a JSON array of token ids; `place` names it in errors. Requires: `array` is valid JSON and
// begins with '['.
Result<tokenizer::TokenIds> token_ids_of(std::string_view array, const std::string& place);

}  // namespace baton::prompt
