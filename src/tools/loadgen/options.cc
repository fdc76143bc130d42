// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/options.h"

#include "config/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace baton::loadgen {
namespace {

struct KindName {
  WorkloadKind kind;
  std::string_view name;
};
constexpr std::array kKinds{
    KindName{WorkloadKind::Distinct, "distinct"},
    KindName{WorkloadKind::SharedPrefix, "shared-prefix"},
    KindName{WorkloadKind::MultiTurn, "multi-turn"},
    KindName{WorkloadKind::HotDocument, "hot-document"},
    KindName{WorkloadKind::LongShort, "long-short"},
    KindName{WorkloadKind::Trace, "trace"},
};

// A prompt longer than any model takes is a slip of the finger, and would need memory.
constexpr std::uint32_t kLongestPrompt = 10'000'000;

std::unexpected<Error> refuse(std::string what) {
  return fail(Errc::InvalidRequest, std::move(what));
}

Result<void> check_share(std::string_view flag, double share) {
  if (share >= 0 && share <= 1) return {};
  return refuse(fmt::format("{} is a share: give a number from 0 to 1, not {}", flag, share));
}

Result<void> check_tokens(std::string_view flag, std::uint32_t tokens, std::uint32_t least) {
  if (tokens >= least && tokens <= kLongestPrompt) return {};
  return refuse(
      fmt::format("{} must be from {} to {}, not {}", flag, least, kLongestPrompt, tokens));
}

Result<void> check_workload(const WorkloadOptions& workload) {
  if (!workload.trace_file.empty() && workload.kind != WorkloadKind::Trace)
    return refuse("--trace is for --workload trace; say so, or leave it out");
  if (!(workload.time_scale > 0) || !std::isfinite(workload.time_scale))
    return refuse("--time-scale must be above 0: 2 replays twice as fast, 0.5 at half the speed");
  for (const auto& [flag, tokens, least] : {std::tuple{"--input-tokens", workload.input_tokens, 1U},
                                            {"--output-tokens", workload.output_tokens, 1U},
                                            {"--prefix-tokens", workload.prefix_tokens, 0U},
                                            {"--document-tokens", workload.document_tokens, 1U},
                                            {"--other-tokens", workload.other_tokens, 1U},
                                            {"--long-tokens", workload.long_tokens, 1U},
                                            {"--short-tokens", workload.short_tokens, 1U}}) {
    if (auto good = check_tokens(flag, tokens, least); !good) return good;
  }
  for (const auto& [flag, share] : {std::pair{"--spread", workload.spread},
                                    {"--hot-share", workload.hot_share},
                                    {"--long-share", workload.long_share}}) {
    if (auto good = check_share(flag, share); !good) return good;
  }
  if (workload.groups == 0) return refuse("--groups must be at least 1");
  if (workload.turns == 0 || workload.turns > 1000) return refuse("--turns must be from 1 to 1000");
  return {};
}

Result<PromptKind> choose_prompt(const Options& options) {
  if (options.api == Api::Chat && options.prompt == PromptKind::Tokens)
    return refuse("chat messages are text: leave --prompt tokens out, or use --api completions");
  if (options.prompt) return *options.prompt;
  // A conversation goes on with the words of the answer, so it is held in text.
  const bool talk = options.workload.kind == WorkloadKind::MultiTurn;
  return options.api == Api::Chat || talk ? PromptKind::Text : PromptKind::Tokens;
}

Result<void> choose_load(Plan& plan) {
  Options& options = plan.options;
  const bool trace = options.workload.kind == WorkloadKind::Trace;
  if (trace && (options.rate || options.concurrency))
    return refuse(
        "a trace has its own times: leave --rate and --concurrency out, and use --time-scale");
  if (options.rate && options.concurrency) {
    return refuse(
        "--concurrency (closed loop: so many at once) and --rate (open loop: so many a second) "
        "exclude each other; give one");
  }
  if (options.rate && (!(*options.rate > 0) || *options.rate > 1e6))
    return refuse("--rate must be above 0 and at most 1000000 requests a second");
  if (options.concurrency && (*options.concurrency == 0 || *options.concurrency > 100'000))
    return refuse("--concurrency must be from 1 to 100000");
  plan.open_loop = trace || options.rate.has_value();
  if (!plan.open_loop && !options.concurrency) options.concurrency = kDefaultConcurrency;
  if (options.requests == 0U) return refuse("--requests must be at least 1");
  plan.requests = options.requests;
  plan.duration = options.duration;
  if (!plan.requests && !plan.duration && !(trace && !options.workload.trace_file.empty()))
    plan.requests = kDefaultRequests;
  return {};
}

Result<void> read_warmup(Plan& plan) {
  const std::string& text = plan.options.warmup;
  if (text.empty()) return {};
  if (std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; })) {
    const auto number = config::parse_number(text, 0, 1'000'000'000);
    if (!number) return refuse(fmt::format("--warmup: {}", number.error()));
    plan.warmup_requests = *number;
    if (plan.requests && plan.warmup_requests >= *plan.requests) {
      return refuse(
          fmt::format("--warmup {} leaves nothing to measure of {} requests; raise --requests",
                      text, *plan.requests));
    }
    return {};
  }
  const auto time = config::parse_duration_or_zero(text);
  if (!time) {
    return refuse(fmt::format("--warmup: {}; or give a number of requests", time.error()));
  }
  plan.warmup_time = *time;
  if (plan.duration && plan.warmup_time >= *plan.duration) {
    return refuse(fmt::format("--warmup {} leaves nothing to measure; raise --duration", text));
  }
  return {};
}

}  // namespace

std::string_view to_string(Api api) { return api == Api::Chat ? "chat" : "completions"; }
std::string_view to_string(PromptKind kind) { return kind == PromptKind::Text ? "text" : "tokens"; }
std::string_view to_string(Arrivals arrivals) {
  return arrivals == Arrivals::Even ? "even" : "poisson";
}
std::string_view to_string(WorkloadKind kind) {
  return std::ranges::find(kKinds, kind, &KindName::kind)->name;
}
std::optional<WorkloadKind> parse_workload(std::string_view text) {
  const auto* found = std::ranges::find(kKinds, text, &KindName::name);
  if (found == kKinds.end()) return std::nullopt;
  return found->kind;
}

Result<Plan> make_plan(Options options) {
  Plan plan{.options = std::move(options), .requests = {}, .duration = {}};
  if (plan.options.url.empty())
    return refuse(
        "say what to load with --url http://HOST:PORT, for instance a router or an engine");
  if (const auto url = config::parse_server_url(plan.options.url); !url)
    return refuse(fmt::format("--url: {}", url.error()));
  if (!plan.options.admin.empty()) {
    if (const auto url = config::parse_worker_url(plan.options.admin); !url)
      return refuse(fmt::format("--admin: {}", url.error()));
  }
  if (auto good = check_workload(plan.options.workload); !good) return fail(good.error());
  auto prompt = choose_prompt(plan.options);
  if (!prompt) return fail(prompt.error());
  plan.prompt = *prompt;
  if (auto good = choose_load(plan); !good) return fail(good.error());
  if (auto good = read_warmup(plan); !good) return fail(good.error());
  for (const std::string& header : plan.options.headers) {
    const bool whole = header.find(':') != std::string::npos && header.front() != ':';
    if (!whole || header.find_first_of("\r\n") != std::string::npos)
      return refuse(fmt::format("--header '{}' is not of the form 'Name: value'", header));
  }
  if (plan.options.vocabulary < 1000 || plan.options.vocabulary > 10'000'000)
    return refuse("--vocabulary must be from 1000 to 10000000: one more than the largest token id");
  if (plan.options.threads == 0 || plan.options.threads > 256)
    return refuse("--threads must be from 1 to 256");
  if (plan.options.max_in_flight == 0) return refuse("--max-in-flight must be at least 1");
  if (plan.options.samples > 1'000'000) return refuse("--samples must be at most 1000000");
  for (const auto& [flag, limit] : {std::pair{"--slo-ttft", plan.options.slo_ttft_ms},
                                    {"--slo-itl", plan.options.slo_itl_ms}}) {
    if (limit && !(*limit > 0)) return refuse(fmt::format("{} must be above 0 milliseconds", flag));
  }
  return plan;
}

}  // namespace baton::loadgen
