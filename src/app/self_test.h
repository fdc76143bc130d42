// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "app/services.h"
#include "core/result.h"
#include "fleet/fleet.h"
#include "handoff/handoff.h"
#include "http_client/upstream_pool.h"
#include "net/deadlines.h"
#include "net/task_group.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <memory>
#include <random>
#include <string>

namespace baton::app {

// Role. Runs one tiny hand-off between a worker and a partner, like a client's request.
// Confinement. The control thread.
// Lifetime. Owned by Router; stop() and an empty TaskGroup before it ends.
class SelfTest {
 public:
  SelfTest(boost::asio::io_context& io, net::Deadlines& deadlines, net::TaskGroup& tasks,
           Services& services);

  // A worker that serves alone, or has no partner yet, passes: a later partner is tested with it.
  boost::asio::awaitable<Result<void>> run(std::shared_ptr<fleet::Worker> worker,
                                           std::string model);
  void forget(model::WorkerId worker) { handoff_.forget(worker); }
  void stop() { pool_.shut_down(); }

 private:
  boost::asio::awaitable<Result<void>> hand_over(std::shared_ptr<fleet::Worker> worker,
                                                 std::string model);

  Services& services_;
  std::mt19937_64 random_;
  http_client::UpstreamPool pool_;
  scheduling::DecisionLog no_decisions_{0};
  handoff::Handoff handoff_;
  bool busy_ = false;  // one at a time: two that join together find each other
};

}  // namespace baton::app
