// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "app/services.h"
#include "core/error.h"
#include "handoff/handoff.h"
#include "http/listener.h"
#include "http/routes.h"
#include "http_client/upstream_pool.h"
#include "net/deadlines.h"
#include "net/loop.h"
#include "net/loop_lag.h"
#include "net/task_group.h"
#include "pipeline/pipeline.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace baton::app {

// Role. One I/O thread with everything that is confined to it: a request that arrives here lives
//   and dies here.
// Confinement. Made, finished and joined by the control thread; the rest runs on its own thread.
// Lifetime. Owned by Router, after the Services it uses.
class IoThread {
 public:
  explicit IoThread(Services& services);
  ~IoThread();

  boost::asio::io_context& io() { return io_; }
  // Accepts on each of them. An empty list: it serves no clients.
  void start(std::vector<boost::asio::ip::tcp::acceptor> acceptors);
  // Any thread. See Listener.
  void finish();
  void retire();
  void stop(const Error& reason);
  // Lets go of everything that still waits for a worker or for a client.
  void drop_everything();
  // The worker has gone for good: drops the state kept for it.
  void forget(model::WorkerId worker);
  std::size_t tasks() const { return tasks_.running(); }
  void join();

 private:
  void listen(boost::asio::ip::tcp::acceptor acceptor);

  net::Loop io_{1};
  Services& services_;
  std::mt19937_64 random_;
  net::Deadlines deadlines_;
  net::LoopLag lag_;
  net::TaskGroup tasks_;
  http_client::UpstreamPool pool_;
  handoff::Handoff handoff_;
  pipeline::PromptStep prompts_;
  pipeline::Pipeline pipeline_;
  http::Routes routes_;
  std::vector<std::unique_ptr<http::Listener>> listeners_;
  std::thread thread_;
};

}  // namespace baton::app
