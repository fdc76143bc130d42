// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "engine/shared/api.h"
#include "fleet/model.h"
#include "prompt/preprocessor.h"
#include "prompt/rules.h"
#include "wire/json_object.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace baton::pipeline {

// The rules by which the workers of a model make prompts, each of them once; the newest release's
// if it has none. Workers that were not asked yet count as the newest of their engine.
std::vector<prompt::Rules> rules_in(const fleet::Model& model);

// Prepares a body by the first of the rules. Inexact if another of them gives another result: while
// engines are upgraded, it is unknown which worker will get it.
// Requires: `rules` is not empty.
Result<prompt::Prepared> prepare(const prompt::Preprocessor& preprocessor, engine::Api api,
                                 const wire::JsonObject& body, prompt::RenderContext context,
                                 std::span<const prompt::Rules> rules);

// The longest context that every worker of the model takes, as far as they have reported it;
// nullopt if none has.
std::optional<std::uint64_t> max_model_len(const fleet::Model& model);

}  // namespace baton::pipeline
