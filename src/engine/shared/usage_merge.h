// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/shared/completion_json.h"
#include "wire/json_object.h"

#include <optional>
#include <string>
#include <string_view>

namespace baton::engine {

// What a decode worker's completion or chunk says about the prompt is only half true: to it, all
// that came over from the prefill worker looks cached, and it has no log-probabilities of the
// prompt. These put the prefill worker's word in its place; all other bytes stay.

// Engines that have nothing to say of a prompt write null into a whole answer and leave the member out of a stream.
enum class AnswerForm { Whole, Streamed };

// The text with all that the prefill worker's `prompt_tokens_details` say, and without what the decode
// worker says there of its own cache. nullopt where there is nothing to change, or a usage that is
// too long.
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
