// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/shared/api.h"
#include "libs/tokenizer/token.h"
#include "model/tokens.h"
#include "model/version.h"
#include "model/worker.h"

#include <optional>
#include <span>
#include <string>

namespace baton::engine {

// Use that a leg makes of the prompt.
enum class Leg {
  Compute,   // computes it: a prefill leg, or a worker that does both phases
  Continue,  // a decode leg: its KV cache comes from a prefill worker
};

// Whether a release of an engine takes a prompt as token ids: in place of a completion's text all
// do; beside a chat's messages vLLM from 0.27 on, SGLang from 0.5.16 on, TensorRT-LLM from 1.0 on.
// nullopt: the release is unknown.
bool takes_token_ids(model::Engine engine, Api api, std::optional<model::Version> version);

// Whether a leg gets token ids. A TensorRT-LLM decode leg gets them under every policy, also if the
// context worker told them.
bool sends_token_ids(model::SendTokenIds policy, model::Engine engine, Api api,
                     std::optional<model::Version> version, Leg leg);

// The ids as ClientCall and Job carry them: [1,2,3] for one prompt, [[1,2],[3]] for several.
std::string token_ids_json(std::span<const tokenizer::TokenIds> prompts);

}  // namespace baton::engine
