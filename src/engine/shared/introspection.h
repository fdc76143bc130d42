// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "model/worker.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::engine {

// An engine's description of itself. Absent: the engine does not say.
struct Facts {
  // A name that requests may ask for.
  struct Card {
    std::string id;
    std::string parent;  // adapters: the model they belong to
    std::optional<std::int64_t> max_model_len;
    bool operator==(const Card&) const = default;
  };
  // Endpoint of the KV-cache events; the ranks count up from the port.
  struct KvEvents {
    std::string publisher;
    model::Endpoint endpoint;  // host empty: the worker's own
    std::uint16_t replay_port =
        0;  // at the same host, where missed batches are repeated; 0: nowhere
    std::string topic;
    bool operator==(const KvEvents&) const = default;
  };

  std::optional<model::Engine> engine;
  std::string version;
  std::vector<Card> models;
  std::optional<std::uint32_t> block_size;  // tokens in a KV block
  std::optional<std::uint32_t> data_parallel_size;
  std::optional<std::uint16_t> bootstrap_port;
  std::optional<model::Role> role;
  std::optional<KvEvents> kv_events;
  std::optional<std::int64_t> max_total_tokens;  // that fit into the KV cache of one rank
  std::optional<std::int64_t> max_running_requests;
  std::string kv_cache_hash_algo;  // TensorRT-LLM
  std::optional<bool> nixl;        // vLLM: whether it has a NIXL connector, as far as metrics show
  bool ids_only = false;           // vLLM: it was started without its tokenizer, and takes no text
  std::optional<std::uint32_t> vocabulary_size;  // token ids are below it
  // SGLang: it was started with a chat template of its own by name, or with a parser whose models
  // have their chats written by code, or with a model for which it has a template itself.
  bool chats_in_code = false;
  // Reason why a field above is missing although the engine knows it: a key is required, or a
  // document could not be read. Empty: nothing was withheld.
  std::string unknown_because;
  bool operator==(const Facts&) const = default;
};

// The model name that requests use for a card: its id, but MODEL:ADAPTER for SGLang's adapters.
std::string asked_for_as(const Facts& facts, const Facts::Card& card);
// The card that requests for `model` mean, by that name or by its bare id; null where there is none.
const Facts::Card* find_card(const Facts& facts, std::string_view model);
// The names that requests use for the adapters (LoRA) of a model that the engine has loaded. None
// if `model` is an adapter itself.
std::vector<std::string> adapter_names(const Facts& facts, std::string_view model);

// Each reads one document of an engine into `facts`. A document of the wrong form is
// EngineProtocol, and the message names the document; `facts` may then hold a part of it. Only the
// members that Facts names are kept and reported: SGLang's /server_info has been seen with keys in
// it.

// GET /v1/models of every engine.
Result<void> read_model_cards(std::string_view json, Facts& facts);
// GET /version of vLLM and TensorRT-LLM.
Result<void> read_version(std::string_view json, Facts& facts);
// GET /server_info of SGLang.
Result<void> read_sglang_server_info(std::string_view json, Facts& facts);
// GET /server_info of TensorRT-LLM.
Result<void> read_trtllm_server_info(std::string_view json, Facts& facts);
// Reads SGLang's refusal of a request for a token that no model has: only there does SGLang tell
// the size of the vocabulary. Any other answer changes nothing.
void read_sglang_refusal(std::string_view json, Facts& facts);
// The refusal (400) of POST /tokenize by vLLM: a server without its tokenizer says so in it.
void read_vllm_tokenize_refusal(std::string_view json, Facts& facts);
// GET /metrics of vLLM: the only place over HTTP that tells the block size and the ranks.
Result<void> read_vllm_metrics(std::string_view text, Facts& facts);

}  // namespace baton::engine
