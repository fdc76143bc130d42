// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/loadgen/draw.h"
#include "tools/loadgen/log_histogram.h"
#include "tools/loadgen/series.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::loadgen {

enum class Ending {
  Completed,
  Refused,  // 429 or 503: the endpoint had no room
  Failed,
  Cut,  // by us, at the end of the run
};

// One request from its sending to its end. Times count from the start of the run.
struct RequestRecord {
  std::chrono::nanoseconds sent{0};
  std::optional<std::chrono::nanoseconds> first_token;
  std::chrono::nanoseconds last_token{0};
  std::chrono::nanoseconds ended{0};
  Ending ending = Ending::Failed;
  std::string error;  // its kind, where it failed or was refused
  bool retry_after = false;
  std::uint64_t events = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::optional<std::uint64_t> cached_tokens;
  std::string prefill_worker;
  std::string decode_worker;
  bool measured = true;  // false: while warming up

  std::optional<std::chrono::nanoseconds> ttft() const;
  // Between two events, on average.
  std::optional<std::chrono::nanoseconds> mean_gap() const;
};

// Latency targets that a request must meet to count as good.
struct Target {
  std::optional<double> ttft_ms;
  std::optional<double> itl_ms;
  bool given() const { return ttft_ms || itl_ms; }
  bool met_by(const RequestRecord& request) const;
};

struct WorkerLoad {
  std::uint64_t requests = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t output_tokens = 0;
};

// Role. The totals of a run, in memory that does not grow with it.
// Confinement. One thread at a time.
// Invariants. Merged tallies equal one that got all records; only the choice of samples may differ.
class Tally {
 public:
  static constexpr std::size_t kMostNames = 1024;  // of workers, and of kinds of errors

  Tally(Target target, std::size_t samples, std::uint64_t seed)
      : target_(target), most_samples_(samples), draw_(mixed({seed, 0x5A3B1E})) {}

  // `late`: after its time had come, in an open loop.
  void sent(std::chrono::nanoseconds at, std::chrono::nanoseconds late, bool measured);
  void first_token(std::chrono::nanoseconds at, std::chrono::nanoseconds ttft, bool measured);
  void next_token(std::chrono::nanoseconds at, std::chrono::nanoseconds gap, bool measured);
  void ended(const RequestRecord& request);
  // Its time had come, but too many were under way.
  void not_sent() { ++skipped; }
  void merge(const Tally& other);

  // Counts of measured requests only.
  std::uint64_t completed = 0;
  std::uint64_t refused = 0;
  std::uint64_t refused_with_retry_after = 0;
  std::uint64_t failed = 0;
  std::uint64_t cut = 0;
  std::uint64_t good = 0;  // met the target
  std::uint64_t prompt_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t with_cached = 0;  // answers that said how much was cached
  std::uint64_t cached_tokens = 0;
  std::uint64_t cacheable_tokens = 0;  // prompt tokens of those
  LogHistogram ttft;
  LogHistogram itl;
  LogHistogram total;
  LogHistogram refusal;
  LogHistogram lateness;
  std::map<std::string, std::uint64_t> errors;
  std::map<std::pair<std::string, std::string>, WorkerLoad> workers;  // role and name
  std::optional<std::chrono::nanoseconds> first_sent;
  std::chrono::nanoseconds last_end{0};

  // Counts of all requests.
  std::uint64_t all_sent = 0;
  std::uint64_t all_ended = 0;
  std::uint64_t warmup = 0;
  std::uint64_t skipped = 0;
  Series series;

  // Some of the measured ones, each as likely as any other.
  const std::vector<RequestRecord>& samples() const { return samples_; }
  const Target& target() const { return target_; }

 private:
  void count_workers(const RequestRecord& request);
  void sample(const RequestRecord& request);
  void merge_samples(const Tally& other);

  Target target_;
  std::size_t most_samples_;
  Draw draw_;
  std::uint64_t sampled_of_ = 0;
  std::vector<RequestRecord> samples_;
};

}  // namespace baton::loadgen
