// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "tools/sim/options.h"
#include "tools/sim/request.h"
#include "tools/sim/token_source.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace baton::sim {

// vLLM and SGLang take only what is said to be JSON.
Result<void> check_content_type(model::Engine engine, std::string_view content_type);
// The web framework refuses the request: the engine's own server does not get to see it.
bool is_validation(const Error& error);

// Which leg a body is meant to be, by its hand-off fields alone (SGLang: and the worker's role);
// valid also for bodies that are refused later.
Phase phase_of(model::Engine engine, model::Role role, const nlohmann::json& body);

// The headers engines look at, empty where there are none.
struct LegHeaders {
  std::string_view rank = {};        // X-data-parallel-rank
  std::string_view request_id = {};  // X-Request-Id
};

// The tokenizer for a request, and the text of its body.
struct PromptText {
  const TokenSource& tokens;
  std::string_view raw;
};

// Reads a generation request with the strictness of the simulated engine. The fields of a hand-off are
// read first, so `out.sources` can be released also when the request is refused. `out.id` is what
// the request is called unless it says so itself.
Result<void> read_request(const Options& options, Api api, const nlohmann::json& body,
                          GenerationRequest& out, LegHeaders headers, const PromptText& text);

// Which model or adapter is asked for.
Result<void> read_model(const Options& options, const nlohmann::json& body, GenerationRequest& out);

// Error for a body that is no JSON (discarded), no object, or absent (null).
Error unreadable_body(model::Engine engine, Api api, const nlohmann::json& body);

// vLLM: what only it can be asked for.
void read_vllm_extras(const Options& options, const nlohmann::json& body, GenerationRequest& out);

// Its prompts, and whether they fit.
Result<void> read_prompts(const Options& options, const nlohmann::json& body,
                          const PromptText& text, GenerationRequest& out);

// The id of the answer, made of the request's.
std::string response_id(model::Engine engine, Api api, std::string_view request_id);

// The engine's own error body, alone or (`in_stream`) as the data of an SSE event.
std::string error_body(model::Engine engine, const Error& error, bool in_stream = false);

// The hand-off part of each dialect.
Result<void> read_vllm_handoff(const Options& options, const nlohmann::json& body,
                               GenerationRequest& out);
Result<void> read_sglang_handoff(const Options& options, const nlohmann::json& body,
                                 GenerationRequest& out);
Result<void> read_trtllm_handoff(const Options& options, const nlohmann::json& body,
                                 GenerationRequest& out);

// The rank asked for by header or body. Comes after the hand-off, which may decide it.
Result<void> read_rank(const Options& options, std::string_view header, const nlohmann::json& body,
                       GenerationRequest& out);

// Checks the types of fields that the simulator does not use.
Result<void> check_sampling_types(const nlohmann::json& body);

// TensorRT-LLM refuses what it does not know.
Result<void> refuse_unknown_trtllm_fields(Api api, const nlohmann::json& body);

// The `encoded_opaque_state` of a context answer: where its blocks are.
std::string encode_opaque_state(const HandoffSource& source);
Result<HandoffSource> decode_opaque_state(const std::string& text);

}  // namespace baton::sim
