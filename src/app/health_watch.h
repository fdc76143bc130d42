// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/exchange.h"
#include "engine/upstream_pool.h"
#include "fleet/fleet.h"
#include "net/deadlines.h"
#include "net/task_group.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_set>

namespace baton::app {

// Role. Asks the workers that nobody has heard of, or that could not be reached, whether they are
//   there. Those that serve are left alone: requests tell soon enough when one is gone.
// Confinement. The control thread.
// Lifetime. Owned by Router; stop() and an empty TaskGroup before it ends.
class HealthWatch {
 public:
  HealthWatch(boost::asio::io_context& io, net::Deadlines& deadlines, net::TaskGroup& tasks,
              fleet::Fleet& fleet, engine::PoolOptions options);

  void start();
  void stop();

 private:
  boost::asio::awaitable<void> watch();
  void ask_the_silent();
  boost::asio::awaitable<void> ask(std::shared_ptr<fleet::Worker> worker);

  net::TaskGroup& tasks_;
  fleet::Fleet& fleet_;
  engine::UpstreamPool pool_;
  boost::asio::steady_timer timer_;
  std::unordered_set<std::uint64_t> asked_;  // and have not answered yet
  std::size_t turn_ = 0;
  bool stopped_ = false;
};

}  // namespace baton::app
