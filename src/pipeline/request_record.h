// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/error.h"
#include "engine/shared/completion_json.h"
#include "handoff/request.h"
#include "libs/locks/mutex.h"
#include "pipeline/cache_hit_tracker.h"
#include "pipeline/limit_refusals.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace baton::pipeline {

// Which part turned a request's prompt into token ids.
enum class TokenSource : std::uint8_t {
  Off,      // none
  Local,    // Baton
  Engine,   // a worker that was asked
  Client,   // sent by the client
  Inexact,  // none, as the engine will see it (images …)
  Failed,   // an attempt that failed
};
std::string_view to_string(TokenSource source);

// The metrics of one model's requests.
struct ModelMetrics {
  ModelMetrics(telemetry::Registry& registry, const std::string& model);

  static constexpr std::size_t kOutcomes = static_cast<std::size_t>(Errc::Internal) + 2;
  std::array<telemetry::Counter*, kOutcomes> requests;  // by Errc, then success
  telemetry::Histogram& time_to_first_token;
  telemetry::Histogram& inter_token;
  telemetry::Histogram& total_time;
  telemetry::Histogram& prefill_time;
  telemetry::Histogram& decode_wait_time;
  telemetry::Histogram& decode_time;
  telemetry::Counter& prompt_tokens;
  telemetry::Counter& completion_tokens;
  telemetry::Counter& request_bytes;
  telemetry::Counter& response_bytes;
  telemetry::Histogram& kv_transfer;
  std::array<telemetry::Counter*, static_cast<std::size_t>(TokenSource::Failed) + 1> prompts;
  telemetry::Histogram& tokenize_time;
  handoff::Counters handoff;
};

// Role. The record of one request: measured as it goes, reported once at its end.
// Confinement. The request's I/O thread.
struct RequestRecord {
  using Clock = std::chrono::steady_clock;

  std::string id;
  std::string_view path;
  std::string model;  // as the client named it; empty if the body could not be read
  bool stream = false;
  Clock::time_point received;
  handoff::RequestTrace trace;
  std::optional<Error> error;
  int status = 0;
  std::optional<Clock::time_point> first_token;
  Clock::time_point last_token;
  std::optional<engine::Usage> usage;
  std::uint64_t events = 0;
  std::size_t request_bytes = 0;
  std::size_t response_bytes = 0;
  TokenSource tokens = TokenSource::Off;
  std::string
      tokens_reason;  // why no exact ones were made; empty: they were made, or none were wanted
  std::size_t prompt_length = 0;  // in tokens, if known before the engine reports them
  std::optional<Clock::duration> tokenize_time;
  std::shared_ptr<CacheHitTracker> cache_hit_tracker;  // null if the prompt's blocks are unknown

  // From sending the decode leg to its first token, the transfer of the KV cache included.
  std::optional<Clock::duration> decode_wait() const;
  // If two workers served: how long the prompt took on the first, and an upper bound of how long
  // its KV cache took to the second.
  std::optional<Clock::duration> prefill_duration() const;
  std::optional<Clock::duration> kv_transfer() const;
  // From the first token to the last.
  std::optional<Clock::duration> decode_duration() const;
  // A token (or a batch of them) is on its way to the client.
  void on_token(ModelMetrics& metrics);
};

// The result of a request, for the explanation of its route.
scheduling::Outcome outcome_of(const RequestRecord& record);

// Role. Reports the results of requests: metrics always, a log line if wanted.
// Confinement. Any thread.
// Invariants. Holds the metrics of models that are or were served only, so no client can make their
//   number grow.
class RequestLedger {
 public:
  RequestLedger(telemetry::Registry& registry, telemetry::Logger& log, bool log_requests);

  // The metrics of a served model, by its own name; made at the first request.
  ModelMetrics& metrics(std::string_view model);
  // Requests for unknown models share one set of metrics.
  ModelMetrics& unknown() { return unknown_; }
  void close(const RequestRecord& record, ModelMetrics& metrics);

 private:
  struct NameHash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  telemetry::Registry& registry_;
  telemetry::Logger& log_;
  bool log_requests_;
  ModelMetrics unknown_;
  LimitRefusals limits_;
  locks::SharedMutex mutex_;
  // Nothing is ever taken from it.
  std::unordered_map<std::string, std::unique_ptr<ModelMetrics>, NameHash, std::equal_to<>> models_
      GUARDED_BY(mutex_);
};

}  // namespace baton::pipeline
