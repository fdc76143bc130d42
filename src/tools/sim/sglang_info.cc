// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/sglang_info.h"

#include "tools/sim/sglang_body.h"
#include "tools/sim/validation.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <optional>
#include <vector>

namespace baton::sim {
namespace {

using nlohmann::ordered_json;

constexpr std::array<std::string_view, 7> kSections{"all",    "core",   "disagg", "lora",
                                                    "memory", "queues", "spec"};

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(at), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string_view parameter(std::string_view query, std::string_view name) {
  for (const std::string_view part : split(query, '&')) {
    if (part.starts_with(name) && part.substr(name.size()).starts_with('='))
      return part.substr(name.size() + 1);
  }
  return {};
}

std::string_view mode_of(const Options& options) {
  return options.role == model::Role::Aggregated ? "null" : model::to_string(options.role);
}

// A prefill leg whose blocks are still to be taken neither runs nor waits.
ordered_json core_of(const Options& options, const EngineRank& rank) {
  const BlockPool& pool = rank.pool();
  const std::uint64_t used = std::uint64_t{pool.total() - pool.available()} * options.block_size;
  const std::uint64_t total = std::uint64_t{pool.total()} * options.block_size;
  // Moments of the decoded tokens; the simulator keeps no such sums.
  const ordered_json moments =
      options.role == model::Role::Prefill ? ordered_json() : ordered_json({0, 0, 0, 0, 0, 0});
  return {
      {"timestamp",
       std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count()},
      {"dp_rank", rank.index()},
      {"num_running_reqs", rank.scheduled()},
      {"num_waiting_reqs", rank.waiting()},
      {"num_waiting_uncached_tokens", 0},
      {"num_used_tokens", used},
      {"num_total_tokens", used},
      {"num_active_tokens", used},
      {"num_prealloc_ready_tokens", 0},
      {"max_total_num_tokens", total},
      {"max_running_requests", options.max_seqs},
      {"token_usage", static_cast<double>(used) / static_cast<double>(total)},
      {"gen_throughput", 0.0},
      {"cache_hit_rate", 0.0},
      {"utilization", 0.0},
      {"total_prefill_uncached_tokens", rank.tokens.prompt - rank.tokens.cached},
      {"total_prefill_busy_us", 0},
      {"decode_moments", moments}};
}

ordered_json load_of(const Options& options, const EngineRank& rank,
                     const std::vector<std::string_view>& sections) {
  ordered_json load = core_of(options, rank);
  const auto wanted = [&sections](std::string_view name) {
    return sections.empty() || std::ranges::find(sections, "all") != sections.end() ||
           std::ranges::find(sections, name) != sections.end();
  };
  if (wanted("memory")) {
    load["memory"] = {{"weight_gb", 0.0},
                      {"kv_cache_gb", 0.0},
                      {"graph_gb", 0.0},
                      {"token_capacity", load["max_total_num_tokens"]}};
  }
  if (wanted("lora") && !options.loras.empty())
    load["lora"] = {{"slots_used", 0}, {"slots_total", 8}, {"utilization", 0.0}};
  if (wanted("disagg")) {
    load["disaggregation"] = {{"mode", mode_of(options)},
                              {"prefill_bootstrap_queue_reqs", 0},
                              {"prefill_inflight_queue_reqs", rank.awaiting_transfer},
                              {"decode_prealloc_queue_reqs", 0},
                              {"decode_transfer_queue_reqs", rank.fetching},
                              {"decode_retracted_queue_reqs", 0},
                              {"kv_transfer_speed_gb_s", 0.0},
                              {"kv_transfer_latency_ms", 0.0}};
  }
  if (wanted("queues")) {
    load["queues"] = {{"waiting", rank.waiting() - rank.fetching},
                      {"grammar", 0},
                      {"paused", 0},
                      {"retracted", 0},
                      {"prealloc_ready", 0}};
  }
  return load;
}

}  // namespace

std::string model_info_body(const Options& options) {
  return ordered_json{
      {"model_path", options.model},
      {"served_model_name", options.model},
      {"tokenizer_path", options.tokenizer.empty() ? options.model : options.tokenizer},
      {"is_generation", true},
      {"preferred_sampling_params", nullptr},
      {"weight_version", "default"},
      {"load_format", "auto"},
      {"reasoning_parser", nullptr},
      {"tool_call_parser", nullptr},
      {"disaggregation_mode", mode_of(options)},
      {"has_image_understanding", false},
      {"has_audio_understanding", false},
      {"model_type", "qwen2"},
      {"architectures", {"Qwen2ForCausalLM"}}}
      .dump();
}

Result<std::string> loads_body(const Options& options, const EngineCore& engine,
                               std::string_view query) {
  const auto sections = split(parameter(query, "include"), ',');
  for (const std::string_view section : sections) {
    if (std::ranges::find(kSections, section) != kSections.end()) continue;
    return fail(sglang_stumbles());
  }
  const std::string_view asked = parameter(query, "dp_rank");
  std::optional<std::uint32_t> one;
  if (!asked.empty()) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(asked.data(), asked.data() + asked.size(), number);
    if (error != std::errc() || end != asked.data() + asked.size()) {
      ValidationErrors errors;
      errors.add("int_parsing", "query.dp_rank",
                 "Input should be a valid integer, unable to parse string as an integer",
                 std::string(asked));
      return fail(errors.sglang_error("get_loads", "GET /v1/loads"));
    }
    one = number;
  }
  ordered_json loads = ordered_json::array();
  for (const auto& rank : engine.ranks()) {
    if (!one || *one == rank->index()) loads.push_back(load_of(options, *rank, sections));
  }
  return ordered_json{{"timestamp", "2026-01-01T00:00:00+00:00"},
                      {"version", options.told_version()},
                      {"accelerator", nullptr},
                      {"num_accelerators", options.tp_size},
                      {"loads", loads}}
      .dump();
}

std::string old_loads_body(const Options& options, const EngineCore& engine) {
  ordered_json loads = ordered_json::array();
  for (const auto& rank : engine.ranks()) {
    const BlockPool& pool = rank->pool();
    loads.push_back({{"dp_rank", rank->index()},
                     {"num_reqs", rank->running() + rank->waiting()},
                     {"num_waiting_reqs", rank->waiting()},
                     {"num_tokens", (pool.total() - pool.available()) * options.block_size}});
  }
  return loads.dump();
}

}  // namespace baton::sim
