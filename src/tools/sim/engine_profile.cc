// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/engine_profile.h"

#include <algorithm>
#include <array>

namespace baton::sim {
namespace {

// Scheduling, sampling and Python: some milliseconds a step. An estimate; GPU times below leave it
// out.
constexpr double kServerMs = 2;

// An L40S against an H200: bf16 compute 362 and 989 TFLOPS, memory 0.86 and 4.8 TB/s.
constexpr double kL40sCompute = 362.0 / 989.0;

// Fitted to measured steps: engine_profile_test holds them against each of these.
constexpr StepModel kH200With8b{.step_ms = kServerMs,
                                .floor_ms = 5.32,
                                .tokens_per_second = 39'000,
                                .attention_ns = 0.9,
                                .context_ns = 29.5};

constexpr std::array kProfiles{
    EngineProfile{.name = "h200-8b",
                  .step = kH200With8b,
                  .kv_bytes_per_token = 128 * 1024,
                  .max_seqs = 1024,
                  .max_batched_tokens = 8192},
    EngineProfile{.name = "h200-32b",
                  .step = {.step_ms = kServerMs,
                           .floor_ms = 19.3,
                           .tokens_per_second = 9'000,
                           .attention_ns = 1.9,
                           .context_ns = 58},
                  .kv_bytes_per_token = 256 * 1024,
                  .max_seqs = 1024,
                  .max_batched_tokens = 8192},
    // One of four GPUs; what they tell each other is not in it.
    EngineProfile{.name = "h200-70b-tp4",
                  .step = {.step_ms = kServerMs,
                           .floor_ms = 13.0,
                           .tokens_per_second = 15'700,
                           .attention_ns = 0.9,
                           .context_ns = 20.5},
                  .kv_bytes_per_token = 80 * 1024,
                  .max_seqs = 1024,
                  .max_batched_tokens = 8192},
    // Not measured. Weights (16 GB) and KV (128 KiB a token) by bandwidth, the rest as an H200's, by
    // compute.
    EngineProfile{.name = "l40s-8b",
                  .step = {.step_ms = kServerMs,
                           .floor_ms = 19,
                           .tokens_per_second = kH200With8b.tokens_per_second * kL40sCompute,
                           .attention_ns = kH200With8b.attention_ns / kL40sCompute,
                           .context_ns = 128 * 1024 / 860.0},
                  .kv_bytes_per_token = 128 * 1024,
                  .max_seqs = 256,
                  .max_batched_tokens = 2048},
    // vLLM on two cores with the tiny model of tests/engines, by tests/engines/calibrate: the server's
    // own work is most of a short step. Decoding was not measured: a token attends to its context as
    // a prompt's tokens do.
    EngineProfile{.name = "cpu",
                  .step = {.step_ms = 16.1,
                           .sequence_ms = 0.65,
                           .floor_ms = 0.88,
                           .tokens_per_second = 90'000,
                           .attention_ns = 13.5,
                           .context_ns = 13.5},
                  .max_seqs = 128,
                  .max_batched_tokens = 2048},
};

}  // namespace

void EngineProfile::apply(Options& options) const {
  options.decode_ms = step.step_ms;
  options.decode_ms_per_seq = step.sequence_ms;
  options.step_floor_ms = step.floor_ms;
  options.prefill_tokens_per_second = step.tokens_per_second;
  options.attention_ns_per_pair = step.attention_ns;
  options.decode_ns_per_context_token = step.context_ns;
  options.kv_bytes_per_token = kv_bytes_per_token;
  options.max_seqs = max_seqs;
  options.max_batched_tokens = max_batched_tokens;
}

std::span<const EngineProfile> engine_profiles() { return kProfiles; }

const EngineProfile* find_profile(std::string_view name) {
  const auto* const found = std::ranges::find(kProfiles, name, &EngineProfile::name);
  return found == kProfiles.end() ? nullptr : found;
}

StepModel step_model(const Options& options) {
  return {.step_ms = options.decode_ms,
          .sequence_ms = options.decode_ms_per_seq,
          .floor_ms = options.step_floor_ms,
          .tokens_per_second = options.prefill_tokens_per_second,
          .attention_ns = options.attention_ns_per_pair,
          .context_ns = options.decode_ns_per_context_token};
}

}  // namespace baton::sim
