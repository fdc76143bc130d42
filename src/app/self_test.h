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

// Role. Puts one tiny hand-off through a worker and a partner of it, as a client's request would go.
// Confinement. The control thread.
// Lifetime. Owned by Router; stop() and an empty TaskGroup before it ends.
class SelfTest {
 public:
  SelfTest(boost::asio::io_context& io, net::Deadlines& deadlines, net::TaskGroup& tasks,
           Services& services);

  // A worker that serves alone, or has nobody yet to hand over to or from, passes: whoever comes
  // next is tested with it.
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
