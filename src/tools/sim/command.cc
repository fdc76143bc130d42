// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/command.h"

#include "config/one_of.h"
#include "core/ready_file.h"
#include "tools/sim/model_tokens.h"
#include "tools/sim/server.h"

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace baton::sim {
namespace {

// Told nonsense, or something it needs is not to be had; as the router's.
constexpr int kCannotStart = 2;

// Ten thousand streams need as many descriptors.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Result<std::unique_ptr<const TokenSource>> tokens_of(const Options& options) {
  if (!options.tokenizer.empty()) {
    return ModelTokens::load(options.tokenizer,
                             prompt::rules_of(options.engine, options.release()));
  }
  return std::make_unique<const WordTokens>();
}

}  // namespace

CLI::App* add_command(CLI::App& app, Options& options) {
  CLI::App* sim = app.add_subcommand("sim", "Run one simulated engine server");
  sim->add_option_function<std::string>(
         "--engine",
         [&options](const std::string& name) { options.engine = *model::parse_engine(name); },
         "Engine to simulate [vllm]")
      ->check(config::one_of({"vllm", "sglang", "trtllm"}));
  sim->add_option_function<std::string>(
         "--role", [&options](const std::string& name) { options.role = *model::parse_role(name); },
         "Role of this worker [aggregated]")
      ->check(config::one_of({"prefill", "decode", "aggregated"}));
  sim->add_option_function<std::string>(
         "--handoff",
         [&options](const std::string& name) { options.handoff = model::parse_handoff_mode(name); },
         "How KV is handed off [nixl_pull, bootstrap or context_first, by engine]")
      ->check(config::one_of({"nixl_pull", "nixl_push", "mooncake", "bootstrap", "context_first",
                              "generation_first"}));
  sim->add_option("--engine-id", options.engine_id,
                  "Name among peers; with several ranks _dp<rank> is added [made up]");
  sim->add_option("--host", options.host, "Address to listen on")->capture_default_str();
  sim->add_option("--port", options.port, "Port to listen on; 0 picks a free one")
      ->capture_default_str();
  sim->add_option("--ready-file", options.ready_file, "Written as host:port once listening");
  sim->add_option("--model", options.model, "Served model name")->capture_default_str();
  sim->add_option("--release", options.version,
                  "Release to say and to be [the newest known, by engine]");
  sim->add_option("--tokenizer", options.tokenizer,
                  "Folder of a model's tokenizer and chat template [tokens of its own]");
  sim->add_option("--lora", options.loras, "vLLM and SGLang: an adapter; give it once for each");
  sim->add_option("--block-size", options.block_size, "Tokens per KV block")
      ->check(CLI::Range(1U, 1U << 20U))
      ->capture_default_str();
  sim->add_option("--blocks", options.blocks, "KV blocks of each rank")
      ->check(CLI::Range(1U, 1U << 28U))
      ->capture_default_str();
  sim->add_option("--dp-size", options.dp_size, "Data-parallel ranks")
      ->check(CLI::Range(1U, 1024U))
      ->capture_default_str();
  sim->add_flag("--enable-dp-attention", options.dp_attention,
                "SGLang: the data-parallel ranks are of attention, told as attn_dp_size");
  sim->add_option("--tp-size", options.tp_size, "Tensor-parallel ranks, as told to peers")
      ->check(CLI::Range(1U, 1024U))
      ->capture_default_str();
  sim->add_option("--pp-size", options.pp_size, "Pipeline-parallel ranks, as told to peers")
      ->check(CLI::Range(1U, 1024U))
      ->capture_default_str();
  add_step_flags(*sim, options);
  sim->add_option("--lease-ms", options.lease_ms, "How long blocks wait for a decode worker")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  sim->add_option("--bootstrap-port", options.bootstrap_port,
                  "SGLang and Mooncake prefill: port of the bootstrap server; 0 picks a free one")
      ->capture_default_str();
  sim->add_option("--bootstrap-ready-file", options.bootstrap_ready_file,
                  "Written as host:port once the bootstrap server is up");
  sim->add_option("--max-model-len", options.max_model_len, "Context length")
      ->check(CLI::Range(2U, 1U << 30U))
      ->capture_default_str();
  sim->add_flag("--enable-scale-out", options.scale_out,
                "vLLM from 0.30 on: render requests for others, which is refused otherwise");
  sim->add_option("--min-output", options.min_output, "Shortest answer in tokens")
      ->check(CLI::Range(0U, 1U << 30U))
      ->capture_default_str();
  sim->add_option("--max-output", options.max_output, "Longest answer in tokens")
      ->check(CLI::Range(0U, 1U << 30U))
      ->capture_default_str();
  sim->add_option("--api-key", options.api_key,
                  "Bearer key required on /v1 paths; SGLang: on all but health and metrics");
  add_vllm_flags(*sim, options);
  sim->add_option("--health-poll-ms", options.health_poll_ms,
                  "Where /health makes a token: how often it looks for it; SGLang's own is 1000")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  sim->add_option(
         "--keep-alive-ms", options.keep_alive_ms,
         "Closes a connection after so long without its next request; real ones: 5000; 0 = "
         "never")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  sim->add_option("--disconnect-ms", options.disconnect_ms,
                  "SGLang: how long it goes on for a client that has gone; its own is up to 4000")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  sim->add_option("--control-port", options.control_port,
                  "Second listener for /sim/ only, untouched by faults; 0 picks a free one")
      ->each([&options](const std::string&) { options.has_control = true; });
  sim->add_option("--control-ready-file", options.control_ready_file,
                  "Written as host:port once the control listener is up");
  add_kv_flags(*sim, options);
  sim->add_flag("--die-with-parent", options.die_with_parent, "End when the parent process ends");
  return sim;
}

int run_command(Options options) {
  if (options.die_with_parent) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (options.max_output < options.min_output) {
    fmt::print(stderr, "sim: --max-output must be at least --min-output\n");
    return kCannotStart;
  }
  if (options.max_batched_tokens > 0 && options.max_batched_tokens < options.max_seqs) {
    fmt::print(stderr, "sim: --max-batched-tokens must be 0 or at least --max-seqs, {}\n",
               options.max_seqs);
    return kCannotStart;
  }
  std::signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();

  boost::asio::io_context io(1);
  boost::asio::signal_set signals(io, SIGTERM, SIGINT);
  // Nothing is worth finishing: the state is simulated and the sockets close with the process.
  signals.async_wait([](const boost::system::error_code&, int) { ::_exit(0); });

  auto tokens = tokens_of(options);
  if (!tokens) {
    fmt::print(stderr, "sim: --tokenizer {}: {}\n", options.tokenizer, tokens.error().message());
    return kCannotStart;
  }
  Server server(io, std::move(options), std::move(*tokens));
  if (const auto started = server.start(); !started) {
    fmt::print(stderr, "sim: {}\n", started.error().message());
    return kCannotStart;
  }
  const Options& actual = server.options();
  fmt::print(stderr, "sim {} {} listening on {}:{}\n", model::to_string(actual.engine),
             model::to_string(actual.role), actual.host, actual.port);
  const auto announce = [&actual](const std::string& file, std::uint16_t port) {
    return file.empty() ||
           write_ready_file(file, model::Endpoint{actual.host, port}.to_string()).has_value();
  };
  const auto announce_feed = [](const std::string& file, const std::string& endpoint) {
    return file.empty() || write_ready_file(file, endpoint).has_value();
  };
  // The engine's own file is written last: a script that waits for it finds the others.
  const bool written = announce(actual.bootstrap_ready_file, actual.bootstrap_port) &&
                       announce(actual.control_ready_file, actual.control_port) &&
                       announce_feed(actual.kv.ready_file, actual.kv.events) &&
                       announce_feed(actual.kv.replay_ready_file, actual.kv.replay) &&
                       announce(actual.ready_file, actual.port);
  if (!written) {
    fmt::print(stderr, "sim: cannot write the ready file\n");
    return kCannotStart;
  }
  io.run();
  return 0;
}

}  // namespace baton::sim
