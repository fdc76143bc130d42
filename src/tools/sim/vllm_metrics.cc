// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/vllm_metrics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

namespace baton::sim {
namespace {

// A number as Prometheus' Python client writes it.
std::string number(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// Role. Writes metric families with one series for each rank, or one for each rank and label.
// Lifetime. Inside one function; refers to what it writes to and reads from.
class VllmText {
 public:
  VllmText(std::string& out, const Options& options, const EngineCore& engine)
      : out_(out), model_(options.model), engine_(engine) {}

  template <typename Value>
  void add(std::string_view type, std::string_view name, Value value) {
    family(type, name);
    for (const auto& rank : engine_.ranks())
      series(name, *rank, "", static_cast<double>(value(*rank)));
  }

  // `values` gives a value for each of the labels.
  template <std::size_t N, typename Values>
  void add_by(std::string_view type, std::string_view name, std::string_view label,
              const std::array<std::string_view, N>& labels, Values values) {
    family(type, name);
    for (const auto& rank : engine_.ranks()) {
      const std::array<double, N> all = values(*rank);
      for (std::size_t i = 0; i < N; ++i)
        series(name, *rank, fmt::format(",{}=\"{}\"", label, labels[i]), all[i]);
    }
  }

  void add(std::string_view name, Histogram RankStats::* histogram) {
    add_histogram(name, [histogram](const EngineRank& rank) -> const Histogram& {
      return rank.stats.*histogram;
    });
  }

  template <typename Select>
  void add_histogram(std::string_view name, Select select) {
    family("histogram", name);
    for (const auto& rank : engine_.ranks()) {
      const Histogram& histogram = select(*rank);
      std::uint64_t sum = 0;
      const std::string bucket = fmt::format("{}_bucket", name);
      for (std::size_t i = 0; i < histogram.bounds().size(); ++i) {
        sum += histogram.counts()[i];
        series(bucket, *rank, fmt::format(",le=\"{}\"", number(histogram.bounds()[i])),
               static_cast<double>(sum));
      }
      const auto count = static_cast<double>(histogram.count());
      series(bucket, *rank, ",le=\"+Inf\"", count);
      series(fmt::format("{}_count", name), *rank, "", count);
      series(fmt::format("{}_sum", name), *rank, "", histogram.sum());
    }
  }

  void family(std::string_view type, std::string_view name) {
    fmt::format_to(std::back_inserter(out_), "# TYPE {} {}\n", name, type);
  }
  void series(std::string_view name, const EngineRank& rank, std::string_view more, double value) {
    fmt::format_to(std::back_inserter(out_), "{}{{engine=\"{}\",model_name=\"{}\"{}}} {}\n", name,
                   rank.index(), model_, more, number(value));
  }
  std::string& text() { return out_; }

 private:
  std::string& out_;
  const std::string& model_;
  const EngineCore& engine_;
};

double usage_of_cache(const EngineRank& rank) {
  const BlockPool& pool = rank.pool();
  return static_cast<double>(pool.total() - pool.available()) / pool.total();
}

void add_state(VllmText& text) {
  using Rank = const EngineRank&;
  text.add("gauge", "vllm:num_requests_running", [](Rank rank) { return rank.running(); });
  text.add("gauge", "vllm:num_requests_waiting", [](Rank rank) { return rank.waiting(); });
  text.add_by<2>("gauge", "vllm:num_requests_waiting_by_reason", "reason", {"capacity", "deferred"},
                 [](Rank rank) {
                   return std::array{static_cast<double>(rank.waiting() - rank.fetching),
                                     static_cast<double>(rank.fetching)};
                 });
  text.add_by<3>("gauge", "vllm:engine_sleep_state", "sleep_state",
                 {"awake", "weights_offloaded", "discard_all"},
                 [](Rank) { return std::array{1.0, 0.0, 0.0}; });
  text.add("gauge", "vllm:kv_cache_usage_perc", usage_of_cache);
}

void add_token_counters(VllmText& text) {
  using Rank = const EngineRank&;
  const auto local_hits = [](Rank rank) {
    return rank.tokens.cached - std::min(rank.tokens.cached, rank.stats.external_tokens);
  };
  const auto external = [](Rank rank) { return rank.stats.external_tokens; };
  text.add("counter", "vllm:prefix_cache_queries_total",
           [](Rank rank) { return rank.tokens.prompt; });
  text.add("counter", "vllm:prefix_cache_hits_total", local_hits);
  text.add("counter", "vllm:external_prefix_cache_queries_total", external);
  text.add("counter", "vllm:external_prefix_cache_hits_total", external);
  for (const char* name :
       {"vllm:mm_cache_queries_total", "vllm:mm_cache_hits_total", "vllm:num_preemptions_total",
        // It estimates nothing.
        "vllm:estimated_flops_per_gpu_total", "vllm:estimated_read_bytes_per_gpu_total",
        "vllm:estimated_write_bytes_per_gpu_total"}) {
    text.add("counter", name, [](Rank) { return 0; });
  }
  text.add("counter", "vllm:prompt_tokens_total", [](Rank rank) { return rank.tokens.prompt; });
  text.add_by<3>("counter", "vllm:prompt_tokens_by_source_total", "source",
                 {"local_compute", "local_cache_hit", "external_kv_transfer"}, [&](Rank rank) {
                   return std::array{static_cast<double>(rank.tokens.prompt - rank.tokens.cached),
                                     static_cast<double>(local_hits(rank)),
                                     static_cast<double>(external(rank))};
                 });
  text.add("counter", "vllm:prompt_tokens_cached_total",
           [](Rank rank) { return rank.tokens.cached; });
  text.add_by<5>("counter", "vllm:prompt_tokens_cached_by_source_total", "source",
                 {"device", "host", "p2p", "disk", "external_unspecified"}, [&](Rank rank) {
                   return std::array{static_cast<double>(local_hits(rank)), 0.0,
                                     static_cast<double>(external(rank)), 0.0, 0.0};
                 });
  text.add("counter", "vllm:generation_tokens_total",
           [](Rank rank) { return rank.tokens.generated; });
  text.add_by<5>("counter", "vllm:request_success_total", "finished_reason",
                 {"stop", "length", "abort", "error", "repetition"}, [](Rank rank) {
                   return std::array{static_cast<double>(rank.stats.stopped),
                                     static_cast<double>(rank.stats.cut_by_length),
                                     static_cast<double>(rank.stats.aborted), 0.0, 0.0};
                 });
}

void add_histograms(VllmText& text) {
  text.add("vllm:request_prompt_tokens", &RankStats::prompt_tokens);
  text.add("vllm:request_generation_tokens", &RankStats::generation_tokens);
  text.add("vllm:iteration_tokens_total", &RankStats::step_tokens);
  text.add("vllm:request_max_num_generation_tokens", &RankStats::most_generation_tokens);
  text.add("vllm:request_params_n", &RankStats::choices);
  text.add("vllm:request_params_max_tokens", &RankStats::max_tokens);
  text.add("vllm:time_to_first_token_seconds", &RankStats::first_token_seconds);
  text.add("vllm:inter_token_latency_seconds", &RankStats::between_tokens_seconds);
  text.add("vllm:request_time_per_output_token_seconds", &RankStats::per_token_seconds);
  text.add("vllm:e2e_request_latency_seconds", &RankStats::whole_seconds);
  text.add("vllm:request_queue_time_seconds", &RankStats::queue_seconds);
  text.add("vllm:request_inference_time_seconds", &RankStats::inference_seconds);
  text.add("vllm:request_prefill_time_seconds", &RankStats::prefill_seconds);
  text.add("vllm:request_decode_time_seconds", &RankStats::decode_seconds);
  text.add("vllm:request_num_preemptions", &RankStats::preemptions);
  text.add("vllm:request_prefill_kv_computed_tokens", &RankStats::computed_tokens);
}

void add_config(VllmText& text, const Options& options, const EngineCore& engine) {
  text.family("gauge", "vllm:cache_config_info");
  for (const auto& rank : engine.ranks()) {
    fmt::format_to(std::back_inserter(text.text()),
                   "vllm:cache_config_info{{block_size=\"{0}\",cache_dtype=\"auto\","
                   "enable_prefix_caching=\"{1}\",engine=\"{2}\",gpu_memory_utilization=\"0.92\","
                   "kv_cache_size_tokens=\"{3}\",num_cpu_blocks=\"None\",num_gpu_blocks=\"{4}\","
                   "num_gpu_blocks_override=\"None\",prefix_caching_hash_algo=\"{5}\","
                   "sliding_window=\"None\"}} 1.0\n",
                   options.block_size, options.caches_prefixes() ? "True" : "False", rank->index(),
                   std::uint64_t{options.blocks} * options.block_size, options.blocks,
                   options.kv.hash_pickle ? "sha256" : "sha256_cbor");
  }
}

// Which adapters have requests; gateways route by it.
void add_loras(VllmText& text, const Options& options, const EngineCore& engine) {
  if (options.loras.empty()) return;
  std::set<std::string> running;
  for (const auto& rank : engine.ranks()) {
    for (const auto& [name, count] : rank->adapters) {
      if (count > 0) running.insert(name);
    }
  }
  text.family("gauge", "vllm:lora_requests_info");
  fmt::format_to(std::back_inserter(text.text()),
                 "vllm:lora_requests_info{{max_lora=\"{}\",running_lora_adapters=\"{}\","
                 "waiting_lora_adapters=\"\"}} 1.0\n",
                 options.loras.size(), fmt::join(running, ","));
}

// Metrics of the whole server. Its queue has no limit, and its tools are never parsed.
void add_frontend(VllmText& text, const Options& options) {
  constexpr std::string_view kRejections = "vllm:admission_rejections_total";
  text.family("counter", kRejections);
  for (const char* reason : {"max_num_queued_reqs", "max_num_queued_tokens"}) {
    fmt::format_to(std::back_inserter(text.text()), "{}{{model_name=\"{}\",reason=\"{}\"}} 0.0\n",
                   kRejections, options.model, reason);
  }
  if (options.tool_call_parser.empty()) return;
  constexpr std::string_view kParsed = "vllm:tool_call_parser_invocations_total";
  text.family("counter", kParsed);
  for (const char* mode : {"streaming", "non_streaming"}) {
    for (const char* outcome : {"tool_call", "no_tool_call"}) {
      fmt::format_to(std::back_inserter(text.text()),
                     "{}{{mode=\"{}\",model_name=\"{}\",outcome=\"{}\","
                     "request_type=\"chat_completions\"}} 0.0\n",
                     kParsed, mode, options.model, outcome);
    }
  }
}

// Only where a NIXL connector is configured.
void add_nixl(VllmText& text, const Options& options, const EngineCore& engine) {
  if (!options.has_nixl()) return;
  const Counters& counters = engine.counters();
  // Counted for the whole server, and told of its first rank.
  const auto of_first = [](std::uint64_t value) {
    return [value](const EngineRank& rank) { return rank.index() == 0 ? value : 0; };
  };
  text.add("vllm:nixl_xfer_time_seconds", &RankStats::transfer_seconds);
  text.add("vllm:nixl_post_time_seconds", &RankStats::transfer_post_seconds);
  text.add("vllm:nixl_bytes_transferred", &RankStats::transferred_bytes);
  text.add("vllm:nixl_num_descriptors", &RankStats::transfer_descriptors);
  text.add("counter", "vllm:nixl_num_failed_transfers_total", of_first(counters.refused));
  text.add("counter", "vllm:nixl_num_failed_notifications_total", of_first(0));
  text.add("counter", "vllm:nixl_num_kv_expired_reqs_total", of_first(counters.expired));
  text.add("counter", "vllm:nixl_num_notifications_after_expiry_total",
           of_first(counters.unrecognized));
}

}  // namespace

void add_vllm_metrics(std::string& out, const Options& options, const EngineCore& engine) {
  VllmText text(out, options, engine);
  add_state(text);
  add_token_counters(text);
  add_histograms(text);
  add_config(text, options, engine);
  add_loras(text, options, engine);
  add_frontend(text, options);
  add_nixl(text, options, engine);
}

}  // namespace baton::sim
