// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/introspection.h"

#include "tools/sim/vllm_metrics.h"

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

constexpr model::Version kSglangTellsReplay{0, 5, 23};

// SGLang's default. Told only: a step's budget is what limits it here.
constexpr int kSglangMaxPrefillTokens = 16384;

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
constexpr std::array<std::string_view, 16> kCounters{
    "cut_transfers",  "leaked",           "leaked_in_transfer", "fetched",  "recomputed", "refused",
    "unrecognized",   "stranded",         "requests",           "finished", "aborted",    "failed",
    "with_token_ids", "token_mismatches", "kv_batches",         "kv_events"};

double cache_usage(const EngineRank& rank) {
  const BlockPool& pool = rank.pool();
  return static_cast<double>(pool.total() - pool.available()) / pool.total();
}

template <typename Value>
std::uint64_t sum(const EngineCore& engine, Value value) {
  std::uint64_t total = 0;
  for (const auto& rank : engine.ranks()) total += value(*rank);
  return total;
}

std::uint64_t running(const EngineCore& engine) {
  return sum(engine, [](const EngineRank& rank) { return rank.running(); });
}

std::uint64_t waiting(const EngineCore& engine) {
  return sum(engine, [](const EngineRank& rank) { return rank.waiting(); });
}

std::uint64_t total_blocks(const EngineCore& engine) {
  return sum(engine, [](const EngineRank& rank) { return rank.pool().total(); });
}

std::uint64_t free_blocks(const EngineCore& engine) {
  return sum(engine, [](const EngineRank& rank) { return rank.pool().available(); });
}

// Role. Prometheus text of SGLang's metric families: its type once, then one series for each rank of
//   what schedulers tell, and one of what the HTTP server counts.
// Confinement. Inside one function; refers to what it writes to and reads from.
class SglangText {
 public:
  SglangText(std::string& out, const Options& options, const EngineCore& engine)
      : out_(out),
        engine_(engine),
        ranked_(options.dp_size > 1),
        common_(fmt::format(
            "engine_type=\"{}\",model_name=\"{}\"",
            options.role == model::Role::Aggregated ? "unified" : model::to_string(options.role),
            options.model)) {}

  template <typename Value>
  void gauge(std::string_view name, Value value) {
    fmt::format_to(std::back_inserter(out_), "# TYPE {} gauge\n", name);
    for (const auto& rank : engine_.ranks()) {
      fmt::format_to(std::back_inserter(out_),
                     "{}{{{},moe_ep_rank=\"0\",pp_rank=\"0\",tp_rank=\"0\"{}}} {}\n", name, common_,
                     ranked_ ? fmt::format(",dp_rank=\"{}\"", rank->index()) : "",
                     static_cast<double>(value(*rank)));
    }
  }

  // Nothing is told before there is something to tell.
  template <typename Value>
  void counter(std::string_view name, std::string_view label, Value value) {
    const std::uint64_t total = sum(engine_, value);
    if (total == 0) return;
    fmt::format_to(std::back_inserter(out_), "# TYPE {0} counter\n{0}{{{1},{2}}} {3}\n", name,
                   common_, label, static_cast<double>(total));
  }

 private:
  std::string& out_;
  const EngineCore& engine_;
  bool ranked_;
  std::string common_;
};

void add_sglang_metrics(std::string& out, const Options& options, const EngineCore& engine) {
  using Rank = const EngineRank&;
  SglangText text(out, options, engine);
  text.gauge("sglang:num_running_reqs", [](Rank rank) { return rank.scheduled(); });
  text.gauge("sglang:num_queue_reqs", [](Rank rank) { return rank.waiting() - rank.fetching; });
  for (const std::string_view name :
       {"sglang:num_grammar_queue_reqs", "sglang:num_prefill_bootstrap_queue_reqs",
        "sglang:num_decode_prealloc_queue_reqs"})
    text.gauge(name, [](Rank) { return 0; });
  text.gauge("sglang:num_prefill_inflight_queue_reqs",
             [](Rank rank) { return rank.awaiting_transfer; });
  text.gauge("sglang:num_decode_transfer_queue_reqs", [](Rank rank) { return rank.fetching; });
  constexpr std::string_view kStreaming = "is_streaming=\"false\"";
  text.counter("sglang:prompt_tokens_total", kStreaming,
               [](Rank rank) { return rank.tokens.prompt; });
  text.counter("sglang:cached_tokens_total", "cache_source=\"device\"",
               [](Rank rank) { return rank.tokens.cached; });
  text.counter("sglang:generation_tokens_total", kStreaming,
               [](Rank rank) { return rank.tokens.generated; });
  text.gauge("sglang:token_usage", cache_usage);
  text.gauge("sglang:max_total_num_tokens", [&options](Rank rank) {
    return std::uint64_t{rank.pool().total()} * options.block_size;
  });
  text.gauge("sglang:page_size", [&options](Rank) { return options.block_size; });
}

// The event endpoint; null if there is none.
ordered_json kv_events(const Options& options) {
  const std::string& endpoint = options.kv.events;
  if (endpoint.empty() || options.kv.connect) return nullptr;
  const std::size_t host = endpoint.find("//") + 2;
  const std::size_t colon = endpoint.rfind(':');
  ordered_json told{{"publisher", "zmq"},
                    {"endpoint_host", endpoint.substr(host, colon - host)},
                    {"endpoint_port_base", std::stoul(endpoint.substr(colon + 1))},
                    {"topic", options.kv.topic},
                    {"block_size", options.block_size},
                    {"dp_size", options.dp_size}};
  const std::string& replay = options.kv.replay;
  if (!replay.empty() && options.release() >= kSglangTellsReplay)
    told["replay_endpoint_port_base"] = std::stoul(replay.substr(replay.rfind(':') + 1));
  return told;
}

KvReporter::Counters told(const EngineRank& rank) {
  return rank.reporter() != nullptr ? rank.reporter()->counters() : KvReporter::Counters();
}

ordered_json block_json(const BlockHasher& hasher, const CachedBlock& block) {
  const auto hex = [&hasher](const BlockHash& hash) {
    return fmt::format("0x{:016x}", hasher.number(hash));
  };
  ordered_json out{{"hash", hex(block.hash)},
                   {"parent", block.parent ? ordered_json(hex(*block.parent)) : ordered_json()},
                   {"tokens", block.tokens},
                   {"tier", block.tier == Tier::Device ? "GPU" : "CPU"}};
  if (!block.scope.lora.empty()) out["lora"] = block.scope.lora;
  if (!block.scope.salt.empty()) out["salt"] = block.scope.salt;
  return out;
}

// vLLM's permission object, the same for all clients.
ordered_json permission(const std::string& model) {
  return {{"id", fmt::format("modelperm-{:016x}", token_of(model))},
          {"object", "model_permission"},
          {"created", kModelCreated},
          {"allow_create_engine", false},
          {"allow_sampling", true},
          {"allow_logprobs", true},
          {"allow_search_indices", false},
          {"allow_view", true},
          {"allow_fine_tuning", false},
          {"organization", "*"},
          {"group", nullptr},
          {"is_blocking", false}};
}

ordered_json model_card(const Options& options) {
  ordered_json card{{"id", options.model},
                    {"object", "model"},
                    {"created", kModelCreated},
                    {"owned_by", owner(options.engine)}};
  if (options.engine != Engine::Trtllm) {
    card["root"] = options.model;
    card["parent"] = nullptr;
    card["max_model_len"] = options.max_model_len;
  }
  if (options.engine == Engine::Vllm)
    card["permission"] = ordered_json::array({permission(options.model)});
  return card;
}

ordered_json adapter_card(const Options& options, const std::string& lora) {
  ordered_json card = model_card(options);
  card["id"] = lora;
  card["root"] = "/adapters/" + lora;
  card["parent"] = options.model;
  card["max_model_len"] = nullptr;
  if (options.engine == Engine::Vllm) card["permission"] = ordered_json::array({permission(lora)});
  return card;
}

}  // namespace

std::string models_body(const Options& options) {
  ordered_json cards = ordered_json::array({model_card(options)});
  for (const std::string& lora : options.loras) cards.push_back(adapter_card(options, lora));
  return ordered_json{{"object", "list"}, {"data", cards}}.dump();
}

Result<std::string> sglang_model_body(const Options& options, std::string_view name) {
  if (name == options.model) return model_card(options).dump();
  for (const std::string& lora : options.loras) {
    if (name == lora) return adapter_card(options, lora).dump();
  }
  return fail(Errc::ModelNotFound,
              json{{"error",
                    {{"message", fmt::format("The model '{}' does not exist", name)},
                     {"type", "invalid_request_error"},
                     {"param", "model"},
                     {"code", "model_not_found"}}}}
                  .dump());
}

std::string server_info_body(const Options& options, std::uint16_t bootstrap_port) {
  if (options.engine == Engine::Trtllm) {
    ordered_json endpoints;
    if (options.mode() == model::HandoffMode::GenerationFirst) {
      endpoints.push_back("tcp://" + model::Endpoint{options.host, options.port}.to_string());
    }
    return ordered_json{
        {"disaggregated_params", {{"ctx_info_endpoint", endpoints}, {"ctx_dp_rank", nullptr}}},
        {"kv_cache_hash_algo", "v1_block_key"}}
        .dump();
  }
  const bool disaggregated = options.role != model::Role::Aggregated;
  // Resolved: with attention's ranks there is one replica. Older releases have no word for them.
  const bool resolved = options.release() >= model::Version{0, 5, 23};
  const std::uint32_t replicas = options.dp_attention && resolved ? 1 : options.dp_size;
  ordered_json info{
      {"model_path", options.model},
      {"served_model_name", options.model},
      {"host", options.host},
      {"port", options.port},
      {"version", options.told_version()},
      {"dp_size", replicas},
      {"enable_dp_attention", options.dp_attention},
      {"tp_size", options.tp_size},
      {"pp_size", options.pp_size},
      {"page_size", options.block_size},
      {"context_length", options.max_model_len},
      {"max_total_num_tokens", std::uint64_t{options.blocks} * options.block_size},
      {"max_running_requests", options.max_seqs},
      {"chunked_prefill_size",
       options.max_batched_tokens > 0 ? std::int64_t{options.max_batched_tokens} : -1},
      {"max_prefill_tokens", kSglangMaxPrefillTokens},
      {"disaggregation_mode", disaggregated ? model::to_string(options.role) : "null"},
      {"disaggregation_bootstrap_port", bootstrap_port},
      {"load_balance_method",
       options.role == model::Role::Prefill ? "follow_bootstrap_room" : "round_robin"},
      {"speculative_algorithm", nullptr},
      {"kv_events", kv_events(options)}};
  if (resolved) info["attn_dp_size"] = options.dp_size / replicas;
  return info.dump();
}

std::string bootstrap_route_body(const Options& options) {
  return ordered_json{{"attn_tp_size", options.tp_size}, {"attn_cp_size", 1},
                      {"dp_size", options.dp_size},      {"pp_size", options.pp_size},
                      {"page_size", options.block_size}, {"kv_cache_dtype", "auto"},
                      {"follow_bootstrap_room", true}}
      .dump();
}

std::string bootstrap_query_body(const Options& options, const EngineCore& engine) {
  const std::string address = model::Endpoint{options.host, options.port}.to_string();
  ordered_json ranks = ordered_json::object();
  for (const auto& rank : engine.ranks()) {
    ranks[std::to_string(rank->index())] = {{"engine_id", rank->engine_id()},
                                            {"worker_addr", {{"0", {{"0", address}}}}}};
  }
  return ranks.dump();
}

ordered_json blocks_of(const EngineCore& engine) {
  ordered_json ranks = ordered_json::array();
  for (const auto& rank : engine.ranks()) {
    const auto next =
        rank->reporter() != nullptr ? rank->reporter()->next_sequence() : std::nullopt;
    ordered_json blocks = ordered_json::array();
    for (const CachedBlock& block : rank->pool().table()) {
      blocks.push_back(block_json(rank->pool().hasher(), block));
    }
    ranks.push_back({{"rank", rank->index()},
                     {"next_seq", next ? ordered_json(*next) : ordered_json()},
                     {"blocks", std::move(blocks)}});
  }
  return ranks;
}

ordered_json state_of(const EngineCore& engine, std::uint64_t connections) {
  const Counters& counters = engine.counters();
  return {
      {"running", running(engine)},
      {"waiting", waiting(engine)},
      {"pinned", sum(engine, [](const EngineRank& rank) { return rank.pins().pinned_blocks(); })},
      {"transferring",
       sum(engine, [](const EngineRank& rank) { return rank.pins().transfers_under_way(); })},
      {"leaked", counters.leaked},
      {"leaked_in_transfer", counters.leaked_in_transfer},
      {"fetched", counters.fetched},
      {"recomputed", counters.recomputed},
      {"refused", counters.refused},
      {"unrecognized", counters.unrecognized},
      {"stranded", counters.stranded},
      {"cut_transfers", counters.cut_transfers},
      {"requests", counters.requests},
      {"finished", counters.finished},
      {"aborted", counters.aborted},
      {"failed", counters.failed},
      {"with_token_ids", counters.with_token_ids},
      {"token_mismatches", counters.token_mismatches},
      {"blocks_total", total_blocks(engine)},
      {"blocks_free", free_blocks(engine)},
      {"blocks_cached", sum(engine, [](const EngineRank& rank) { return rank.pool().cached(); })},
      {"kv_batches", sum(engine, [](const EngineRank& rank) { return told(rank).batches; })},
      {"kv_events", sum(engine, [](const EngineRank& rank) { return told(rank).events; })},
      {"ranks", engine.ranks().size()},
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
      {"numActiveRequests", running(engine)},
      {"numQueuedRequests", waiting(engine)},
      {"kvCacheStats",
       {{"maxNumBlocks", total_blocks(engine)}, {"freeNumBlocks", free_blocks(engine)}}}};
  for (const auto& [name, value] : state_of(engine, connections).items()) {
    stats["sim_" + name] = value;
  }
  return ordered_json::array({stats}).dump();
}

}  // namespace baton::sim
