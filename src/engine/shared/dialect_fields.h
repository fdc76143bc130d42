// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/shared/dialect.h"
#include "model/worker.h"
#include "wire/json_object.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton::engine {

// Fields that carry a hand-off or choose a rank, in any dialect, as of vLLM 0.32 and
// SGLang 0.5.23. A client has no business with them: it could read another request's KV cache. Of
// kv_transfer_params LMCache's settings of the request (`lmcache.…`) are the client's, and every leg
// to vLLM has them.
inline constexpr std::array<std::string_view, 11> kHandoffFields{
    "kv_transfer_params", "ec_transfer_params", "bootstrap_host",      "bootstrap_port",
    "bootstrap_room",     "decode_tp_size",     "bootstrap_pair_key",  "disagg_prefill_dp_rank",
    "routed_dp_rank",     "data_parallel_rank", "disaggregated_params"};

// Whether a member is there and neither null nor empty.
bool says_something(std::optional<std::string_view> raw);

// Whether a prompt, valid JSON, is given as token ids.
bool is_token_ids(std::string_view prompt);

// How many tokens the answer may have; nullopt: as many as fit.
std::optional<std::int64_t> token_limit(const ClientCall& call);

// Whether the engine's streams carry token ids where they are asked for.
bool gives_token_ids(model::Engine engine, Api api);

// True where the answer takes more of the prompt than a KV cache that came from elsewhere has, or
// several sequences at once.
bool needs_one_worker(const wire::JsonObject& body);

// The start of a leg that is wanted for its KV cache: the client's body as one branch of the
// request has it, without hand-off fields, to be answered whole.
wire::JsonSplice prefill_leg(const ClientCall& call, model::Engine engine);
// The start of a leg whose answer is the client's, or of one that only releases a KV cache.
wire::JsonSplice answer_leg(const ClientCall& call, model::Engine engine, DecodePurpose purpose);

// One token, not streamed.
void shape_as_single_token(wire::JsonSplice& splice, const wire::JsonObject& body);

// Puts the prompt in as token ids where the engine takes them: in place of a completion's text,
// beside a chat's messages.
void set_prompt_ids(wire::JsonSplice& splice, const ClientCall& call, model::Engine engine,
                    std::string_view ids);

// vLLM's hand-off object, which also carries a chat's prompt where that goes as token ids.
// `params` must be a JSON object.
void set_kv_transfer_params(wire::JsonSplice& splice, const ClientCall& call,
                            const std::string& params);
// The same where nothing is handed over: it is there for token ids and settings, if at all.
void set_ids_alone(wire::JsonSplice& splice, const ClientCall& call, model::Engine engine);

}  // namespace baton::engine
