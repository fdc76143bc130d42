// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// A rank's statistics of its requests, for /metrics.
#pragma once

#include "tools/sim/answer.h"
#include "tools/sim/histogram.h"

#include <chrono>
#include <cstdint>

namespace baton::sim {

// The times of one sequence.
struct SequenceTimes {
  using Time = std::chrono::steady_clock::time_point;
  Time arrived = {};
  Time first_token = {};
  Time last_token = {};
};

struct SequenceSize {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t most_tokens = 0;  // that it may produce
};

// Role. Histograms and counters of one rank's requests, with vLLM's bounds.
// Confinement. The server's thread.
class RankStats {
 public:
  RankStats();

  // A token now; moves the times on.
  void token(SequenceTimes& times, bool first);
  void finished(const SequenceTimes& times, const SequenceSize& size, Finish reason);
  void request(std::uint32_t n);
  // A prompt's KV that was fetched from another worker.
  void fetched(double seconds, std::uint64_t tokens, std::uint64_t blocks);

  Histogram first_token_seconds;
  Histogram between_tokens_seconds;
  Histogram per_token_seconds;
  Histogram whole_seconds;
  Histogram queue_seconds;
  Histogram inference_seconds;
  Histogram prefill_seconds;
  Histogram decode_seconds;
  Histogram prompt_tokens;
  Histogram generation_tokens;
  Histogram most_generation_tokens;
  Histogram max_tokens;
  Histogram computed_tokens;
  Histogram step_tokens;
  Histogram choices;
  Histogram preemptions;
  Histogram transfer_seconds;
  Histogram transfer_post_seconds;
  Histogram transferred_bytes;
  Histogram transfer_descriptors;
  std::uint64_t stopped = 0;
  std::uint64_t cut_by_length = 0;
  std::uint64_t aborted = 0;
  std::uint64_t external_tokens = 0;  // of prompts, whose KV came from another worker
};

}  // namespace baton::sim
