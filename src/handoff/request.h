// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/fleet.h"
#include "handoff/suspects.h"
#include "model/tokens.h"
#include "scheduling/decision_log.h"
#include "scheduling/prefill_bypass.h"
#include "scheduling/request.h"
#include "scheduling/scheduler.h"
#include "telemetry/metrics.h"
#include "wire/http_message.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace baton::handoff {

// Counts and memory of the hand-offs of one model, on all threads.
struct Counters {
  Counters(telemetry::Registry& registry, const std::string& model);

  telemetry::Counter& retries;
  telemetry::Counter& migrations;
  telemetry::Counter& releases;
  telemetry::Counter& wasted_prefill_tokens;
  telemetry::Counter& poison_requests;
  // By Bypassed: the decisions whether the decode worker computes the prompt.
  scheduling::BypassCounters bypasses;
  // Which of the model's requests workers have ended under.
  Suspects suspects = {};
};

// A client's request, or one branch of it, on its way through prefill and decode.
struct HandoffRequest : scheduling::ScheduledRequest {
  bool by_alias;          // the client used another name than the workers do
  wire::Headers headers;  // for the workers
  Counters& counters;
  // The prompt as token ids, and whether workers get it so; see engine::ClientCall and
  // engine::token_ids_json. Null: they are unknown.
  std::shared_ptr<const std::string> token_ids = {};
  model::SendTokenIds send_token_ids = model::SendTokenIds::Auto;
};

// One leg, as reported. A new attempt overwrites it.
struct LegTrace {
  using Clock = std::chrono::steady_clock;

  std::string worker;  // empty: no such leg
  std::optional<std::uint32_t> rank;
  std::optional<Clock::time_point> sent;
  std::optional<Clock::time_point> done;  // prefill: answered

  void begin(const fleet::Booking& booking) {
    *this = {.worker = booking.worker().name(),
             .rank = booking.rank(),
             .sent = Clock::now(),
             .done = {}};
  }
  void end() { done = Clock::now(); }
};

// The legs' facts for the request's log line, its metrics and its response headers.
struct RequestTrace {
  LegTrace prefill;
  LegTrace decode;  // also of a worker that did both
  std::size_t retries = 0;
  std::size_t migrations = 0;
  scheduling::Admission admission;  // before its first worker was chosen
  bool bypassed =
      false;  // the decode worker computes the prompt, though a prefill worker could have
  scheduling::DecisionLog::Page page;
};

}  // namespace baton::handoff
