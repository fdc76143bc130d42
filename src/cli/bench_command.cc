// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "cli/bench_command.h"

#include "app/descriptor_limit.h"
#include "cli/serve_command.h"
#include "config/one_of.h"
#include "config/values.h"
#include "tools/loadgen/bench.h"
#include "tools/loadgen/report.h"
#include "tools/loadgen/result.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace baton::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;
using loadgen::Options;

constexpr int kNothingAnswered = 1;

constexpr std::string_view kBenchExamples = R"(Examples:
  baton bench --url http://127.0.0.1:8080 --concurrency 32 --requests 2000
  baton bench --url http://127.0.0.1:8080 --rate 20 --duration 60s --warmup 10s --slo-ttft 500 --slo-itl 50
  baton bench --url http://127.0.0.1:8080 --workload shared-prefix --prefix-tokens 4096 --groups 8 --rate 50
  baton bench --url http://127.0.0.1:8080 --workload trace --trace trace.jsonl --time-scale 2 --output run.json
  baton bench compare a.json b.json --report comparison.html

Explained in docs/bench.md.)";

int refuse_bench(std::string_view what) {
  fmt::print(stderr, "baton bench: {}\n", what);
  return kCannotStart;
}

template <class Time>
void add_duration(CLI::App& bench, const std::string& flag, Time& into,
                  const std::string& meaning) {
  bench.add_option_function<std::string>(
      flag,
      [&into, flag](const std::string& text) {
        const auto time = config::parse_duration_or_zero(text);
        if (!time) throw CLI::ValidationError(flag, time.error());
        into = *time;
      },
      meaning);
}

template <class Value>
void add_choice(CLI::App& bench, const std::string& flag, Value& into,
                const std::map<std::string, Value>& names, const std::string& meaning) {
  std::vector<std::string> known;
  for (const auto& [name, value] : names) known.push_back(name);
  bench
      .add_option_function<std::string>(
          flag, [&into, names](const std::string& text) { into = names.at(text); }, meaning)
      ->check(config::one_of(std::move(known)));
}

void add_workload_flags(CLI::App& bench, loadgen::WorkloadOptions& workload) {
  bench
      .add_option_function<std::string>(
          "--workload",
          [&workload](const std::string& name) { workload.kind = *loadgen::parse_workload(name); },
          "What is sent [distinct]")
      ->check(config::one_of(
          {"distinct", "shared-prefix", "multi-turn", "hot-document", "long-short", "trace"}));
  bench.add_option("--seed", workload.seed, "Equal seeds send equal prompts")
      ->capture_default_str();
  bench.add_option("--input-tokens", workload.input_tokens, "Tokens of a prompt that are its own")
      ->capture_default_str();
  bench.add_option("--output-tokens", workload.output_tokens, "Tokens of an answer")
      ->capture_default_str();
  bench.add_option("--spread", workload.spread, "Both vary by up to this share, 0 to 1")
      ->capture_default_str();
  bench
      .add_option("--prefix-tokens", workload.prefix_tokens,
                  "shared-prefix, multi-turn: tokens of the system prompt")
      ->capture_default_str();
  bench.add_option("--groups", workload.groups, "shared-prefix: different system prompts")
      ->capture_default_str();
  bench.add_option("--turns", workload.turns, "multi-turn: requests of a conversation")
      ->capture_default_str();
  add_duration(bench, "--think-time", workload.think_time,
               "multi-turn: before the next turn, by up to half shorter or longer [1s]");
  bench.add_option("--document-tokens", workload.document_tokens, "hot-document: its length")
      ->capture_default_str();
  bench.add_option("--hot-share", workload.hot_share, "hot-document: share of requests about it")
      ->capture_default_str();
  bench
      .add_option("--other-tokens", workload.other_tokens, "hot-document: length of other prompts")
      ->capture_default_str();
  bench.add_option("--long-tokens", workload.long_tokens, "long-short: length of long prompts")
      ->capture_default_str();
  bench.add_option("--short-tokens", workload.short_tokens, "long-short: length of short prompts")
      ->capture_default_str();
  bench.add_option("--long-share", workload.long_share, "long-short: share of long prompts")
      ->capture_default_str();
  bench.add_option("--trace", workload.trace_file,
                   "trace: a file in Mooncake's format [a made-up one of chat traffic]");
  bench.add_option("--trace-block", workload.trace_block, "trace: tokens for each of its hash_ids")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  bench.add_option("--time-scale", workload.time_scale, "trace: how much faster than it was")
      ->capture_default_str();
}

void add_load_flags(CLI::App& bench, Options& load) {
  bench.add_option("--concurrency", load.concurrency, "Closed loop: requests at once [16]");
  bench.add_option("--rate", load.rate, "Open loop: requests a second, whatever the answers do");
  add_choice(bench, "--arrivals", load.arrivals,
             {{"poisson", loadgen::Arrivals::Poisson}, {"even", loadgen::Arrivals::Even}},
             "Open loop: how they are spread [poisson]");
  bench.add_option("--requests", load.requests,
                   "Requests to send [1000, or all of a trace; no limit with --duration]");
  add_duration(bench, "--duration", load.duration, "Time to send for");
  bench.add_option("--warmup", load.warmup, "Not measured: 10s, or a number of requests");
  add_duration(bench, "--timeout", load.timeout, "Longest time for one answer [10m]");
  add_duration(bench, "--drain", load.drain,
               "After --duration: time for what still runs, then it is cut [30s]");
  bench
      .add_option("--max-in-flight", load.max_in_flight,
                  "Open loop: more are not sent, but counted")
      ->capture_default_str();
  bench.add_option("--threads", load.threads, "I/O threads")->capture_default_str();
}

void add_result_flags(CLI::App& bench, Options& load) {
  bench.add_option("--slo-ttft", load.slo_ttft_ms, "Target in ms: goodput counts what met it");
  bench.add_option("--slo-itl", load.slo_itl_ms, "Target in ms, of an answer's mean gap");
  bench.add_option("--label", load.label, "What to call this run [the workload]");
  bench.add_option("--admin", load.admin,
                   "Baton's admin address, for its load per worker over time");
  bench.add_option("--admin-key-file", load.admin_key_file, "Key for it, where it wants one");
  bench.add_option("--output", load.output, "Write the result to this file, as JSON");
  bench.add_option("--report", load.report,
                   "Write a page with tables and plots to this file, as HTML");
  bench.add_option("--samples", load.samples, "Requests that the result has one by one")
      ->capture_default_str();
  bench.add_flag("--quiet", load.quiet, "No progress, only the summary");
}

bool write_file(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  return file.good();
}

loadgen::Progress::Style style_of(const Options& options) {
  if (options.quiet) return loadgen::Progress::Style::Quiet;
  return isatty(STDERR_FILENO) != 0 ? loadgen::Progress::Style::Bar
                                    : loadgen::Progress::Style::Lines;
}

unsigned terminal_width() {
  winsize size{};
  ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
  return size.ws_col;
}

int compare(const BenchOptions& options) {
  std::vector<OrderedJson> results;
  std::set<std::string> labels;
  for (const std::string& path : options.results) {
    auto result = loadgen::read_result(path);
    if (!result) return refuse_bench(result.error().message());
    // Runs with the same label are distinguished by their files.
    std::string label = result->value("label", "");
    if (!labels.insert(label).second)
      label += fmt::format(" ({})", std::filesystem::path(path).stem().string());
    (*result)["label"] = label;
    results.push_back(*std::move(result));
  }
  fmt::print("{}", loadgen::comparison_text(results));
  if (options.load.report.empty() || write_file(options.load.report, loadgen::report_html(results)))
    return 0;
  return refuse_bench(fmt::format("--report: cannot write {}", options.load.report));
}

}  // namespace

CLI::App* add_bench_command(CLI::App& root, BenchOptions& options) {
  CLI::App* bench = root.add_subcommand("bench", "Load an OpenAI endpoint and measure its answers");
  bench->footer(std::string(kBenchExamples));
  Options& load = options.load;
  bench->add_option("--url", load.url, "The endpoint: http://HOST:PORT or https://HOST:PORT");
  bench->add_option("--model", load.model, "Model to ask for [the first of /v1/models]");
  bench->add_option("--api-key-file", load.api_key_file, "File with the key to send");
  bench->add_option("--ca-file", load.ca_file, "https: certificates to trust [the system's]");
  bench->add_option("--header", load.headers, "Further header, 'Name: value'; may be repeated");
  add_choice(*bench, "--api", load.api,
             {{"chat", loadgen::Api::Chat}, {"completions", loadgen::Api::Completions}},
             "Which API [completions]");
  add_choice(*bench, "--prompt", load.prompt,
             std::map<std::string, std::optional<loadgen::PromptKind>>{
                 {"tokens", loadgen::PromptKind::Tokens}, {"text", loadgen::PromptKind::Text}},
             "Token ids, of exact length, or words [tokens; text for chat and multi-turn]");
  bench->add_option("--vocabulary", load.vocabulary, "Token ids are below this")
      ->capture_default_str();
  bench->add_flag("--natural-end", load.natural_end,
                  "Let answers end by themselves: for endpoints that refuse ignore_eos");
  bench->add_flag("--session-ids", load.session_ids, "Send x-baton-session-id with conversations");
  add_workload_flags(*bench, load.workload);
  add_load_flags(*bench, load);
  add_result_flags(*bench, load);
  CLI::App* compare = bench->add_subcommand("compare", "Put results side by side");
  compare->add_option("results", options.results, "Files that --output wrote")->required();
  compare->add_option("--report", load.report, "Write them to this file, as HTML");
  compare->callback([&options] { options.compare = true; });
  return bench;
}

int run_bench_command(const BenchOptions& options) {
  if (options.compare) return compare(options);
  const auto plan = loadgen::make_plan(options.load);
  if (!plan) return refuse_bench(plan.error().message());
  std::signal(SIGPIPE, SIG_IGN);
  app::raise_descriptor_limit();
  const auto outcome = loadgen::run_bench(
      *plan, style_of(options.load), terminal_width(),
      [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); });
  if (!outcome) return refuse_bench(outcome.error().message());
  const OrderedJson result = loadgen::result_json(*plan, *outcome);
  fmt::print("{}", loadgen::summary_text(result));
  if (!options.load.output.empty()) {
    const std::string text = result.dump(1, ' ', false, OrderedJson::error_handler_t::replace);
    if (!write_file(options.load.output, text + "\n"))
      return refuse_bench(fmt::format("--output: cannot write {}", options.load.output));
  }
  if (!options.load.report.empty() &&
      !write_file(options.load.report, loadgen::report_html(std::span(&result, 1))))
    return refuse_bench(fmt::format("--report: cannot write {}", options.load.report));
  return outcome->tally.completed + outcome->tally.warmup > 0 ? 0 : kNothingAnswered;
}

}  // namespace baton::cli
