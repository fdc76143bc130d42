// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/answer.h"
#include "tools/sim/engine_hash.h"
#include "tools/sim/options.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace baton::sim {

enum class Api { Chat, Completions };

// Which part of a disaggregated request a body asks for.
enum class Phase { Prefill, Decode, Aggregated };

std::string_view to_string(Phase phase);

// Tensor- and pipeline-parallel ranks of a worker.
struct ParallelSizes {
  std::uint32_t tensor = 1;
  std::uint32_t pipeline = 1;
  bool operator==(const ParallelSizes&) const = default;
};

// Location of the KV of a decode leg's prompt.
struct HandoffSource {
  std::string host;
  std::uint16_t port = 0;
  std::string engine_id;  // empty: any process at that address
  std::string key;
  std::vector<std::uint32_t> blocks = {};   // empty: all that are held under the key
  bool wait_for_prefill = false;            // the prefill leg may not even have arrived yet
  bool at_bootstrap = false;                // the address is of a Mooncake bootstrap server
  std::optional<ParallelSizes> sizes = {};  // what the prefill worker must have, where told
};

// Rendezvous of a prefill leg with a decode leg that does not wait for its answer, for the KV of
// one sequence. An SGLang room determines the rank, too.
struct Meeting {
  std::string key;
  std::optional<std::uint32_t> rank;
};

// SGLang: what an answer tells besides the usual.
struct SglangExtras {
  bool prompt_ids = false;      // of a chat's prompt, in each choice
  bool cached_details = false;  // where the cached tokens lay
  bool input_ids = false;       // the prompt's and the answer's, behind the choices
  bool output_ids = false;
};

// Role. One parsed generation request, without the engine's dialect.
struct GenerationRequest {
  Api api = Api::Chat;
  std::string model;  // as asked for: the served one or an adapter
  Phase phase = Phase::Aggregated;
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
  bool return_token_ids = false;
  bool echo = false;                      // the prompt comes before the answer
  bool prompt_alone = false;              // and no answer: the one token that is made stays untold
  bool tokens_as_ids = false;             // in log-probabilities
  std::optional<std::uint32_t> logprobs;  // how many besides the sampled token
  std::optional<std::uint32_t> prompt_logprobs;  // as many for each token of the prompt
  std::string late_refusal;                      // SGLang: what only its scheduler finds wrong
  std::vector<std::string> echoes;               // SGLang's completions: what each prompt repeats
  SglangExtras sglang;
  std::uint32_t stream_interval = 1;
  bool with_token_ids = false;  // the prompt came as token ids
  bool token_mismatch = false;  // and not as those that its text gives
  std::vector<std::vector<TokenId>> prompts;
  std::vector<std::vector<std::string>> pieces;  // their texts, where they are asked for
  std::optional<std::string> prompt_text;        // of a chat, likewise
  std::uint32_t n = 1;
  std::optional<std::uint32_t> max_tokens;
  AnswerLimits limits;  // its cap is set once the prompt's length is known
  std::string tool_name;
  std::string id;  // as header or body gave it, else as the server made it up
  std::optional<std::uint64_t> seed;

  std::vector<HandoffSource> sources;  // decode: one per prompt, SGLang: one per choice
  std::vector<Meeting> meetings;       // prefill: one per choice, where legs run together
  std::optional<std::uint32_t> rank;   // the data-parallel rank asked for
  bool recompute = false;              // hand-off parameters the engine ignores
  std::optional<TokenId> first_token;  // TensorRT-LLM: what the context worker generated
  std::optional<std::int64_t> disagg_request_id;
  CacheScope scope;  // which part of the prefix cache it can use
};

}  // namespace baton::sim
