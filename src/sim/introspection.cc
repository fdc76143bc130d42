// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "sim/introspection.h"

#include "sim/answer.h"
#include "sim/prompt.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

namespace baton::sim {
namespace {

using model::Engine;
using nlohmann::json;
using nlohmann::ordered_json;

// A fixed date: the simulated model was made before anything else.
constexpr std::int64_t kModelCreated = 1700000000;

std::string_view owner(Engine engine) {
  switch (engine) {
    case Engine::Vllm:
      return "vllm";
    case Engine::Sglang:
      return "sglang";
    case Engine::Trtllm:
      return "tensorrt_llm";
  }
  return "";
}

// Only these grow for ever; the rest of the state goes up and down.
constexpr std::array<std::string_view, 8> kCounters{"leaked",   "fetched",  "recomputed", "refused",
                                                    "requests", "finished", "aborted",    "failed"};

double cache_usage(const EngineCore& engine) {
  const BlockPool& pool = engine.pool();
  return static_cast<double>(pool.total() - pool.available()) / pool.total();
}

void add(std::string& out, std::string_view type, std::string_view name, std::string_view labels,
         double value) {
  fmt::format_to(std::back_inserter(out), "# TYPE {0} {1}\n{0}{{{2}}} {3}\n", name, type, labels,
                 value);
}

void add_vllm_metrics(std::string& out, const Options& options, const EngineCore& engine) {
  const std::string labels = fmt::format("model_name=\"{}\",engine=\"0\"", options.model);
  const Counters& counters = engine.counters();
  add(out, "gauge", "vllm:num_requests_running", labels, static_cast<double>(engine.running()));
  add(out, "gauge", "vllm:num_requests_waiting", labels, static_cast<double>(engine.waiting()));
  add(out, "gauge", "vllm:kv_cache_usage_perc", labels, cache_usage(engine));
  add(out, "counter", "vllm:prefix_cache_queries_total", labels,
      static_cast<double>(counters.prompt_tokens));
  add(out, "counter", "vllm:prefix_cache_hits_total", labels,
      static_cast<double>(counters.cached_tokens));
  add(out, "counter", "vllm:prompt_tokens_total", labels,
      static_cast<double>(counters.prompt_tokens));
  add(out, "counter", "vllm:generation_tokens_total", labels,
      static_cast<double>(counters.generation_tokens));
  add(out, "gauge", "vllm:cache_config_info",
      fmt::format("block_size=\"{}\",num_gpu_blocks=\"{}\",enable_prefix_caching=\"True\"",
                  options.block_size, options.blocks),
      1);
}

void add_sglang_metrics(std::string& out, const Options& options, const EngineCore& engine) {
  const std::string labels = fmt::format("model_name=\"{}\",engine_type=\"{}\",tp_rank=\"0\"",
                                         options.model, model::to_string(options.role));
  add(out, "gauge", "sglang:num_running_reqs", labels, static_cast<double>(engine.running()));
  add(out, "gauge", "sglang:num_queue_reqs", labels, static_cast<double>(engine.waiting()));
  add(out, "gauge", "sglang:token_usage", labels, cache_usage(engine));
  add(out, "gauge", "sglang:max_total_num_tokens", labels,
      static_cast<double>(options.blocks) * options.block_size);
  add(out, "gauge", "sglang:page_size", labels, options.block_size);
}

}  // namespace

std::string models_body(const Options& options) {
  ordered_json card{{"id", options.model},
                    {"object", "model"},
                    {"created", kModelCreated},
                    {"owned_by", owner(options.engine)}};
  if (options.engine != Engine::Trtllm) {
    card["root"] = options.model;
    card["parent"] = nullptr;
    card["max_model_len"] = options.max_model_len;
  }
  if (options.engine == Engine::Vllm) card["permission"] = json::array();
  return ordered_json{{"object", "list"}, {"data", json::array({card})}}.dump();
}

std::string version_of(Engine engine) {
  switch (engine) {
    case Engine::Vllm:
      return "0.28.0";
    case Engine::Sglang:
      return "0.5.18";
    case Engine::Trtllm:
      return "1.3.0";
  }
  return "";
}

std::string server_info_body(const Options& options, const EngineCore& engine,
                             std::uint16_t bootstrap_port) {
  if (options.engine == Engine::Trtllm) {
    return ordered_json{
        {"disaggregated_params", {{"ctx_info_endpoint", nullptr}, {"ctx_dp_rank", nullptr}}},
        {"kv_cache_hash_algo", "v1_block_key"}}
        .dump();
  }
  const bool disaggregated = options.role != model::Role::Aggregated;
  json per_rank = json::array();
  for (std::uint32_t rank = 0; rank < options.dp_size; ++rank)
    per_rank.push_back({{"dp_rank", rank}});
  return ordered_json{
      {"model_path", options.model},
      {"served_model_name", options.model},
      {"host", options.host},
      {"port", options.port},
      {"version", version_of(options.engine)},
      {"dp_size", options.dp_size},
      {"tp_size", 1},
      {"page_size", options.block_size},
      {"context_length", options.max_model_len},
      {"max_total_num_tokens", std::uint64_t{options.blocks} * options.block_size},
      {"max_running_requests", options.max_seqs},
      {"disaggregation_mode", disaggregated ? model::to_string(options.role) : "null"},
      {"disaggregation_bootstrap_port", bootstrap_port},
      {"load_balance_method",
       options.role == model::Role::Prefill ? "follow_bootstrap_room" : "round_robin"},
      {"speculative_algorithm", nullptr},
      {"kv_events", nullptr},
      {"internal_states", per_rank},
      {"num_running_reqs", engine.running()}}
      .dump();
}

std::string bootstrap_route_body(const Options& options) {
  return ordered_json{{"attn_tp_size", 1},
                      {"attn_cp_size", 1},
                      {"dp_size", options.dp_size},
                      {"pp_size", 1},
                      {"page_size", options.block_size},
                      {"kv_cache_dtype", "auto"},
                      {"follow_bootstrap_room", true}}
      .dump();
}

Result<std::string> tokenize_body(const Options& options, const std::string& body) {
  const json request = json::parse(body, nullptr, false);
  if (request.is_discarded()) return fail(Errc::InvalidJson, "the body is not valid JSON");
  std::vector<TokenId> tokens;
  if (request.is_object() && request.contains("messages")) {
    auto chat = chat_prompt(request);
    if (!chat) return fail(chat.error());
    tokens = std::move(*chat);
  } else if (request.is_object() && request.contains("prompt") && request["prompt"].is_string()) {
    append_tokens(request["prompt"].get_ref<const std::string&>(), tokens);
  } else {
    return fail(Errc::InvalidRequest, "exactly one of prompt and messages is required");
  }
  ordered_json answer{
      {"count", tokens.size()}, {"max_model_len", options.max_model_len}, {"tokens", tokens}};
  if (options.engine == Engine::Vllm) answer["token_strs"] = nullptr;
  return answer.dump();
}

ordered_json state_of(const EngineCore& engine, std::uint64_t connections) {
  const Counters& counters = engine.counters();
  return {{"running", engine.running()},
          {"waiting", engine.waiting()},
          {"pinned", engine.pinned()},
          {"leaked", counters.leaked},
          {"fetched", counters.fetched},
          {"recomputed", counters.recomputed},
          {"refused", counters.refused},
          {"requests", counters.requests},
          {"finished", counters.finished},
          {"aborted", counters.aborted},
          {"failed", counters.failed},
          {"blocks_total", engine.pool().total()},
          {"blocks_free", engine.pool().available()},
          {"blocks_cached", engine.pool().cached()},
          {"connections", connections}};
}

std::string metrics_text(const Options& options, const EngineCore& engine,
                         std::uint64_t connections) {
  std::string out;
  if (options.engine == Engine::Vllm) add_vllm_metrics(out, options, engine);
  if (options.engine == Engine::Sglang) add_sglang_metrics(out, options, engine);
  for (const auto& [name, value] : state_of(engine, connections).items()) {
    const bool counter = std::ranges::find(kCounters, name) != kCounters.end();
    fmt::format_to(std::back_inserter(out), "# TYPE sim_{0} {1}\nsim_{0} {2}\n", name,
                   counter ? "counter" : "gauge", value.get<std::uint64_t>());
  }
  return out;
}

std::string iteration_stats_body(const EngineCore& engine, std::uint64_t connections) {
  ordered_json stats{
      {"numActiveRequests", engine.running()},
      {"numQueuedRequests", engine.waiting()},
      {"kvCacheStats",
       {{"maxNumBlocks", engine.pool().total()}, {"freeNumBlocks", engine.pool().available()}}}};
  for (const auto& [name, value] : state_of(engine, connections).items()) {
    stats["sim_" + name] = value;
  }
  return ordered_json::array({stats}).dump();
}

}  // namespace baton::sim
