// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "model/version.h"
#include "model/worker.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::sim {

using TokenId = std::uint32_t;

// Times are given in milliseconds, and fractions of them.
inline std::chrono::nanoseconds from_ms(double ms) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(ms * 1e6));
}

enum class KvEncoding { Array, Map };

// How the engine tells of its KV blocks. Absent: as its engine and release do.
struct KvOptions {
  std::string events;  // where the first rank publishes; empty: nowhere
  std::string replay;  // where it answers for what was missed
  std::string ready_file;
  std::string replay_ready_file;
  bool connect = false;  // to the process that binds `events`
  std::string topic;     // {host}, {port} and {model} are filled in
  std::optional<KvEncoding> encoding;
  std::optional<std::uint32_t> replay_frames;
  bool hash_bytes = false;        // whole hashes in place of numbers
  bool root_parent_zero = false;  // what stands for "no parent"
  std::uint64_t first_sequence = 0;
  std::optional<std::uint32_t> buffer;  // batches kept for replay; TensorRT-LLM: events kept
  std::string hash_seed;                // vLLM's PYTHONHASHSEED; empty: something random
  bool hash_pickle = false;             // vLLM's `sha256` in place of `sha256_cbor`
  std::optional<bool> decode_cache;     // whether a decode worker has a prefix cache
  bool host_hashes_only = false;        // vLLM: stores on the host have no tokens
  std::uint32_t host_blocks = 0;        // of each rank, for what the device has no room for
};

// The command line of `baton sim`. Times are in the unit their name says; 0 means "as fast as it
// can".
struct Options {
  model::Engine engine = model::Engine::Vllm;
  model::Role role = model::Role::Aggregated;
  std::optional<model::HandoffMode> handoff;  // absent: the engine's default
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::string ready_file;
  std::string model = "demo";
  std::string version;    // that the engine says it has; empty: the newest the simulator knows
  std::string tokenizer;  // a model's folder; empty: tokens of the simulator's own
  std::vector<std::string> loras;  // adapters, by name
  std::uint32_t block_size = 16;
  std::uint32_t blocks = 8192;
  std::uint32_t dp_size = 1;
  bool dp_attention = false;  // SGLang: the ranks are of attention alone, and told as that
  std::uint32_t tp_size = 1;
  std::uint32_t pp_size = 1;
  std::string engine_id;  // empty: one of its own
  double prefill_tokens_per_second = 200000;
  double decode_ms = 2;
  double decode_ms_per_seq = 0;
  double step_floor_ms = 0;
  double attention_ns_per_pair = 0;
  double decode_ns_per_context_token = 0;
  double transfer_ms = 1;
  std::optional<double> transfer_ms_per_block;  // absent: as the KV's bytes take
  std::uint32_t kv_bytes_per_token = 0;         // a profile's
  std::uint32_t max_seqs = 256;
  std::uint32_t max_batched_tokens = 8192;  // of each rank's step; 0: no limit
  std::uint64_t seed = 0;
  double lease_ms = 30000;
  std::uint16_t bootstrap_port = 0;
  std::string bootstrap_ready_file;
  std::uint32_t max_model_len = 131072;
  bool scale_out = false;  // vLLM from 0.30 on: whether it renders requests for others
  std::uint32_t min_output = 16;
  std::uint32_t max_output = 64;
  std::string api_key;
  std::string tool_call_parser;  // vLLM: empty: tools are refused
  bool auto_tool_choice = false;
  bool multimodal = false;  // vLLM, SGLang: takes parts that are no text, and leaves them out
  std::uint32_t stream_interval = 1;  // vLLM: tokens to a chunk, but for the first and the last
  double health_poll_ms = 1;          // how often a health check looks for the token it made
  double keep_alive_ms = 0;  // how long a connection waits for its next request; 0: for ever
  double disconnect_ms = 0;  // SGLang: until it stops a request whose client has gone
  bool has_control = false;
  std::uint16_t control_port = 0;
  std::string control_ready_file;
  bool die_with_parent = false;
  KvOptions kv;

  model::HandoffMode mode() const { return handoff.value_or(model::default_mode(engine)); }
  // The release that decides which fields and paths it knows; 0.0 if its version is none.
  model::Version release() const {
    return model::parse_version(told_version()).value_or(model::Version{});
  }
  std::string_view told_version() const {
    if (!version.empty()) return version;
    switch (engine) {
      case model::Engine::Vllm:
        return "0.32.0";
      case model::Engine::Sglang:
        return "0.5.23";
      case model::Engine::Trtllm:
        break;
    }
    return "1.3.0";
  }
  // TensorRT-LLM's events are fetched, as long as it keeps any.
  bool keeps_kv_events() const {
    return engine == model::Engine::Trtllm && kv.buffer.value_or(0) > 0;
  }
  // Whether its blocks are published.
  bool tells_of_blocks() const { return !kv.events.empty() || keeps_kv_events(); }
  // A decode worker of vLLM keeps what it received; those of the others have no cache unless told.
  bool caches_prefixes() const {
    return role != model::Role::Decode || kv.decode_cache.value_or(engine == model::Engine::Vllm);
  }
  // Time to move one KV block; the default is that of a link of 50 GB/s.
  double block_transfer_ms() const {
    constexpr double kBytesPerMs = 50e6;
    return transfer_ms_per_block.value_or(static_cast<double>(block_size) * kv_bytes_per_token /
                                          kBytesPerMs);
  }
  // Whether it has a NIXL connector.
  bool has_nixl() const {
    return engine == model::Engine::Vllm && role != model::Role::Aggregated &&
           mode() != model::HandoffMode::Mooncake;
  }
  // Whether decode reads what the prefill's answer names. In the other modes the legs run together.
  bool prefill_first() const {
    return mode() == model::HandoffMode::NixlPull || mode() == model::HandoffMode::ContextFirst;
  }
};

}  // namespace baton::sim
