// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// vLLM's checks of prompts, and their text where it is requested.
#pragma once

#include "core/result.h"
#include "tools/sim/options.h"
#include "tools/sim/request.h"
#include "tools/sim/token_source.h"

#include <nlohmann/json_fwd.hpp>

namespace baton::sim {

// Before anything is rendered or tokenized.
Result<void> check_vllm_input(const Options& options, const nlohmann::json& body, Api api);

// Once the tokens are known.
Result<void> check_vllm_lengths(const Options& options, const nlohmann::json& body,
                                const GenerationRequest& request);

// The text of each token, for `echo` and for the log-probabilities of a prompt. A token whose text
// cannot be known is <ID>.
void add_vllm_texts(const nlohmann::json& body, const TokenSource& tokens, GenerationRequest& out);

}  // namespace baton::sim
