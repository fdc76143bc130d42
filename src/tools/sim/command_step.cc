// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Flags of steps and hand-offs: how long they last, and how much a step does.
#include "config/values.h"
#include "tools/sim/command.h"
#include "tools/sim/engine_profile.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <ranges>
#include <string>

namespace baton::sim {
namespace {

constexpr const char* kSection = "Steps and hand-offs";

std::string profile_names() {
  return fmt::format(
      "{}", fmt::join(engine_profiles() | std::views::transform(&EngineProfile::name), ", "));
}

std::string unless_known(const std::string& name) {
  if (find_profile(name) != nullptr) return {};
  return fmt::format("unknown {}; there are {}", config::shown(name), profile_names());
}

void add_profile(CLI::App& sim, Options& options) {
  sim.add_option_function<std::string>(
         "--profile", [&options](const std::string& name) { find_profile(name)->apply(options); },
         fmt::format("Steps as long as a model's on a machine, with vLLM's limits: {}. Flags below "
                     "override parts of it",
                     profile_names()))
      ->check(CLI::Validator(unless_known, ""))
      ->type_name("NAME")
      ->group(kSection);
}

void add_time(CLI::App& sim, const std::string& flag, double& value, const std::string& help) {
  sim.add_option(flag, value, help)
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->group(kSection);
}

}  // namespace

void add_step_flags(CLI::App& sim, Options& options) {
  // The values that were given are assigned in the order in which the flags are added here, wherever
  // they stand: all others override the profile.
  add_profile(sim, options);
  add_time(sim, "--decode-ms", options.decode_ms, "What each step lasts beside its computing");
  add_time(sim, "--decode-ms-per-seq", options.decode_ms_per_seq,
           "Added to a step per running sequence");
  add_time(sim, "--prefill-tokens-per-second", options.prefill_tokens_per_second,
           "Tokens of prompts computed in a second; with --step-floor-ms those of answers count as "
           "well; 0 = instant");
  add_time(sim, "--step-floor-ms", options.step_floor_ms,
           "What a step's tokens take to compute at least, however few: the time to read the "
           "weights");
  add_time(sim, "--attention-ns-per-pair", options.attention_ns_per_pair,
           "Added for each token of a prompt, times the tokens it attends to: n*n/2 for a prompt");
  add_time(sim, "--decode-ns-per-context-token", options.decode_ns_per_context_token,
           "Added for each token that a decoding sequence has so far: the time to read its KV");
  sim.add_option("--max-seqs", options.max_seqs, "Sequences that run at once on each rank")
      ->check(CLI::Range(1U, 1U << 20U))
      ->capture_default_str()
      ->group(kSection);
  sim.add_option("--max-batched-tokens", options.max_batched_tokens,
                 "Tokens that a step computes at most on each rank; 0 = no limit")
      ->capture_default_str()
      ->group(kSection);
  add_time(sim, "--transfer-ms", options.transfer_ms, "Duration of a hand-off");
  sim.add_option("--transfer-ms-per-block", options.transfer_ms_per_block,
                 "Added to a hand-off per KV block [0; of a profile's model: its bytes at 50 GB/s]")
      ->check(CLI::NonNegativeNumber)
      ->group(kSection);
  sim.add_option("--seed", options.seed, "Jitter of step times; 0 = none")
      ->capture_default_str()
      ->group(kSection);
  sim.footer(
      "A step lasts decode-ms, decode-ms-per-seq for each sequence, the longer of step-floor-ms "
      "and "
      "tokens by their speed,\nand what attention and context add. Profiles and formula: "
      "docs/simulator.md, Step times");
}

}  // namespace baton::sim
