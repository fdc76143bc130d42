// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "tools/sim/options.h"

#include <nlohmann/json_fwd.hpp>

#include <vector>

namespace baton::sim {

// The prompt of a chat body (`messages`, `tools`) as the simulated chat template renders it.
Result<std::vector<TokenId>> chat_prompt(const nlohmann::json& body);

// The prompts of a completions body: a string, token ids, or a list of either.
Result<std::vector<std::vector<TokenId>>> completion_prompts(const nlohmann::json& prompt);

// A JSON array of token ids.
Result<std::vector<TokenId>> token_list(const nlohmann::json& list, std::string_view field);

}  // namespace baton::sim
