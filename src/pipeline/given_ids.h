// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "engine/shared/api.h"
#include "wire/json_object.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace baton::pipeline {

// Token ids that a client sends in place of a text: `prompt` of a completion as ids or lists of
// them, `input_ids` (SGLang) and `prompt_token_ids` (TensorRT-LLM). An engine that does not check
// them may end with an id that its model does not have.

// How many bytes of the body they are; 0: there are none.
std::size_t given_ids_bytes(engine::Api api, const wire::JsonObject& body);

// InvalidRequest, naming the place, the id and the limit, if one is no integer, negative, beyond 31
// bits, or not below `vocabulary`; nullopt: its size is unknown.
Result<void> check_given_ids(engine::Api api, const wire::JsonObject& body,
                             std::optional<std::uint64_t> vocabulary);

}  // namespace baton::pipeline
