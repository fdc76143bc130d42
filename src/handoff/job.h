// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "scheduling/queue/patience.h"
#include "scheduling/queue/slo_record.h"
#include "engine/shared/client_body.h"
#include "engine/shared/completion_json.h"
#include "engine/shared/dialect.h"
#include "fleet/fleet.h"
#include "fleet/known_prompt.h"
#include "handoff/decision_log.h"
#include "handoff/suspects.h"
#include "model/tokens.h"
#include "scheduling/policy/hints.h"
#include "telemetry/metrics.h"
#include "wire/http_message.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace baton::handoff {

// What becomes of the question whether a decode worker is to compute a prompt itself.
enum class Bypassed : std::uint8_t {
  DeclinedByPolicy,
  AllowedGateDisabled,
  DeniedBusyUnknown,
  DeniedBusy,
  AllowedNotBusy,
};
inline constexpr std::size_t kBypassDecisions = 5;
std::string_view to_string(Bypassed decision);

// What hand-offs of one model count and remember, on all threads.
struct Counters {
  Counters(telemetry::Registry& registry, const std::string& model);

  telemetry::Counter& retries;
  telemetry::Counter& migrations;
  telemetry::Counter& releases;
  telemetry::Counter& wasted_prefill_tokens;
  telemetry::Counter& poison_requests;
  // By Bypassed: what was decided about leaving prefill to the decode worker.
  std::array<telemetry::Counter*, kBypassDecisions> bypasses;
  // Which of the model's requests workers have ended under.
  Suspects suspects = {};
};

// Role. Knows a request's prompt, and is told who computes it.
// Confinement. The request's I/O thread.
class PromptObserver {
 public:
  virtual ~PromptObserver() = default;
  // What is known of it now, and who has the beginning of it.
  virtual std::shared_ptr<const fleet::KnownPrompt> known() const = 0;
  // The prompt is on its way there; again where another attempt is made.
  virtual void computing(const fleet::Booking& booking) = 0;
  // A prefill worker has answered, and said so much of the prompt's tokens.
  virtual void computed(const std::optional<engine::Usage>& usage) = 0;
};

// What is to be done for a client: its request, or one branch of it.
struct Job {
  std::shared_ptr<fleet::Model> model;
  engine::Api api;
  std::shared_ptr<const engine::ClientBody> body;
  bool by_alias;          // the client used another name than the workers do
  wire::Headers headers;  // for the workers
  std::string request_id;
  std::shared_ptr<const scheduling::Hints> hints;
  Counters& counters;
  // The adapter of the model that it is for; nothing: the model itself.
  std::optional<fleet::AdapterWish> adapter = {};
  // Where the request was fanned out; see engine::ClientCall.
  std::optional<std::uint32_t> choice = {};
  std::string_view prompt = {};
  // The prompt as token ids, and whether workers get it so; see engine::ClientCall and
  // engine::token_ids_json. Null: nobody knows them.
  std::shared_ptr<const std::string> token_ids = {};
  model::SendTokenIds send_token_ids = model::SendTokenIds::Auto;
  std::shared_ptr<PromptObserver> observer = {};  // null: nobody wants to know
  std::uint64_t prompt_tokens = 0;                // a guess where nobody has counted them
  // The answer is streamed, and could be continued on another worker.
  bool continuable = false;
  // When the router had read its head. Absent: when it asks for a worker.
  std::optional<std::chrono::steady_clock::time_point> received = {};
  // How long it may wait for a worker; absent: as configured.
  std::optional<scheduling::Patience> patience = {};
  // Who sent it, where that is known: not the key, but which one it was. Clients that wait share by
  // this, unless the request says for which tenant it is.
  std::string client = {};
  // How bad the workers may be that it names.
  fleet::Standing worst = fleet::Standing::Spare;
};

// One leg, as it is told of. A new attempt writes it anew.
struct LegTrail {
  using Clock = std::chrono::steady_clock;

  std::string worker;  // empty where there was no such leg
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

// What the request's line in the log, its metrics and its response headers tell about the legs.
struct Trail {
  LegTrail prefill;
  LegTrail decode;  // also of a worker that did both
  std::size_t retries = 0;
  std::size_t migrations = 0;
  Waited waited;                                   // before its first worker was chosen
  std::shared_ptr<scheduling::SloRecord> slo = {};  // of its class; null: it has no objective
  std::shared_ptr<fleet::Pool> pool = {};          // that it came to; null: it came to none
  bool bypassed =
      false;  // the decode worker computes the prompt, where a prefill worker could have
  DecisionLog::Page page;
};

}  // namespace baton::handoff
