// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/random.h"
#include "core/result.h"
#include "handoff/request.h"
#include "handoff/tools.h"
#include "handoff/upstream_response.h"
#include "model/worker.h"

#include <boost/asio/awaitable.hpp>

#include <algorithm>
#include <chrono>

namespace baton::handoff {

// Role. The prefill router: gets a request through prefill and decode, in the order and with the
//   fields its engine wants, and never abandons a hand-off half way. Holds the tools of its
//   sessions; session.h serves a request.
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
  void finish() {
    auto& release_for = tools_.options.release_for;
    release_for = std::min(release_for, kReleaseSoon);
  }

  // The worker has gone.
  void forget(model::WorkerId worker) { tools_.peers.forget(worker); }

  const Random& random() const { return tools_.random; }

 private:
  static constexpr std::chrono::milliseconds kReleaseSoon{1500};

  HandoffTools tools_;
};

}  // namespace baton::handoff
