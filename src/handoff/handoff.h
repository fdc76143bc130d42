// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/result.h"
#include "engine/shared/peer_directory.h"
#include "handoff/request.h"
#include "handoff/ticket_source.h"
#include "handoff/upstream_response.h"
#include "http_client/exchange.h"
#include "model/trtllm_auth.h"
#include "net/cpu_pool.h"
#include "net/task_group.h"
#include "telemetry/log.h"

#include <boost/asio/awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace baton::handoff {

struct Options {
  http_client::ExchangeTimeouts timeouts;
  std::chrono::milliseconds grace;  // to complete a hand-off whose client has left
  std::size_t response_bytes;
  telemetry::Logger* log = nullptr;  // for failed legs
  // Members of clients' bodies that no worker gets.
  std::vector<std::string> stripped_fields = {};
  model::TrtllmAuth trtllm_auth = {};
  // How long a release is retried: as long as vLLM keeps unfetched blocks.
  std::chrono::milliseconds release_for = std::chrono::seconds(30);
};

// Role. The prefill router: gets a request through prefill and decode, in the order and with the
//   fields its engine wants, and never abandons a hand-off half way. Holds the tools of its
//   sessions; state_machine.h and session.h decide.
// Confinement. One I/O thread.
// Lifetime. Owned by the thread; outlives its tasks.
class Handoff {
 public:
  Handoff(http_client::UpstreamPool& pool, net::TaskGroup& tasks, net::CpuPool& cpu,
          TicketSource& tickets, Random random, telemetry::Registry& metrics,
          scheduling::DecisionLog& decisions, Options options);

  // Until a worker is about to answer, or the request has failed.
  boost::asio::awaitable<Result<UpstreamResponse>> run(HandoffRequest request, RequestTrace& trace,
                                                       Cancellation& cancellation);

  // The process is about to end: blocks that cannot be released soon are left to their lease.
  void finish() { options_.release_for = std::min(options_.release_for, kReleaseSoon); }

  // The worker has gone.
  void forget(model::WorkerId worker) { peers_.forget(worker); }

  const Random& random() const { return random_; }

 private:
  friend class HandoffSession;
  static constexpr std::chrono::milliseconds kReleaseSoon{1500};

  std::chrono::milliseconds release_for() const { return options_.release_for; }

  http_client::UpstreamPool& pool_;
  net::TaskGroup& tasks_;
  net::CpuPool& cpu_;  // reads long answers, and makes bodies of them
  TicketSource& tickets_;
  Random random_;
  Options options_;
  telemetry::Registry& metrics_;
  scheduling::DecisionLog& decisions_;
  engine::PeerDirectory peers_;
};

}  // namespace baton::handoff
