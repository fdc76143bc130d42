// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/shared/completion_json.h"
#include "wire/json_object.h"

#include <optional>
#include <string>
#include <string_view>

namespace baton::engine {

// A decode worker's completion or chunk describes the prompt wrongly: blocks received from the
// prefill worker count as cached there, and log-probabilities of the prompt are missing. These
// functions insert the prefill worker's values; all other bytes stay.

// An engine with nothing to say about a prompt writes null into a whole answer and omits the member
// in a stream.
enum class AnswerForm { Whole, Streamed };

// The text with the prefill worker's `prompt_tokens_details`, and without the decode worker's
// members about its own cache. nullopt if nothing changes, or if the usage is too long.
std::optional<std::string> rewrite_usage(std::string_view json, const Usage& prefill,
                                         AnswerForm form);

// Whether a completion is to repeat its prompt with log-probabilities of it.
bool wants_input_logprobs(const wire::JsonObject& body);
// SGLang: the log-probabilities of the prompt's tokens, as raw JSON; empty where there are none. A
// list where the answer has one, else an object of lists: what a completion's logprobs begin with.
std::string input_logprobs_of(const wire::JsonObject& completion);
// The text with these log-probabilities. nullopt where they do not belong into it.
std::optional<std::string> merge_input_logprobs(std::string_view json, std::string_view logprobs);

}  // namespace baton::engine
