// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "app/handover.h"
#include "app/line_channel.h"
#include "app/next_process.h"
#include "net/task_group.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace baton::app {

// Role. On SIGUSR2: starts the next process, and hands over to it once it is ready. Executes
//   Handover's decisions.
// Confinement. The control thread.
// Lifetime. Owned by Router; stop() and an empty TaskGroup before it ends.
class Successor {
 public:
  struct Hooks {
    std::function<std::string_view()> objection;  // what speaks against a restart now
    std::function<boost::asio::awaitable<void>()> save;
    std::function<std::vector<Handed>()> sockets;  // that are handed down
    std::function<bool()> ready;                   // whether this process could serve
    std::function<void(bool)> own_file;            // whether what was saved is ours to write
    std::function<void()> handed_over;
  };

  Successor(boost::asio::io_context& io, net::TaskGroup& tasks, std::vector<std::string> command,
            std::chrono::milliseconds timeout, Hooks hooks, telemetry::Registry& metrics,
            telemetry::Logger& log);

  void start();
  // This process is about to end, and so does a successor that is not ready. Signals are still
  // answered, by a refusal.
  void give_up();
  void stop();

 private:
  void await_signal();
  boost::asio::awaitable<void> attempt();
  void look();
  void act(const Handover::Step& step);
  void launch();
  void hand_over();
  void end_process(const Handover::Step& step);

  telemetry::Registry& metrics_;
  telemetry::Logger& log_;
  net::TaskGroup& tasks_;
  const std::vector<std::string> command_;
  const Hooks hooks_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer timer_;
  Handover handover_;
  std::unique_ptr<LineChannel> channel_;  // null: there is no successor
  pid_t child_ = 0;  // that was started: the successor, or its parent that ends once it has left it
};

}  // namespace baton::app
