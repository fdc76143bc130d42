// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "etcd/client.h"
#include "fleet/etcd_keys.h"
#include "fleet/fleet.h"
#include "fleet/source.h"
#include "net/deadlines.h"
#include "net/task_group.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace baton::fleet {

// The client's options, from the configuration.
etcd::Options client_options(const config::Etcd& config);

// Role. Workers that are registered at etcd: lists them, then follows their changes.
// Confinement. The control thread.
// Lifetime. Outlives its tasks: stop(), wait for the group, destroy.
// Invariants. While etcd is away, its last state holds. The next listing corrects whatever was
//   missed, and changes only what differs.
class EtcdSource final : public Source {
 public:
  EtcdSource(boost::asio::io_context& io, net::Deadlines& deadlines, net::TaskGroup& tasks,
             Fleet& fleet, const config::Etcd& config, telemetry::Registry& metrics,
             telemetry::Logger& log);

  void start() override;
  void stop() override;
  SourceStatus status() const override;

 private:
  boost::asio::awaitable<void> run();
  // Returns when the watch is over, with the reason.
  boost::asio::awaitable<etcd::Failure> follow();
  boost::asio::awaitable<etcd::Reply<void>> list();
  boost::asio::awaitable<void> pause();
  void take(const std::vector<etcd::Event>& events, std::int64_t revision);
  void lost(const etcd::Failure& failure);
  void found();

  // Handles workers whose key has gone.
  void see_to_leaving();
  boost::asio::awaitable<void> ask_after_leases();
  boost::asio::awaitable<void> tend();

  net::TaskGroup& tasks_;
  const std::string prefix_;
  telemetry::Logger& log_;
  telemetry::Gauge& connected_;
  telemetry::Counter& listings_;
  etcd::Client client_;
  EtcdKeys keys_;
  boost::asio::steady_timer retry_;
  boost::asio::steady_timer round_;  // of tend()
  std::mt19937 dice_;
  std::chrono::milliseconds delay_{0};  // before the next try
  std::int64_t revision_ = 0;           // everything up to it is known
  bool watching_ = false;               // the watch of this try is open
  // Since when etcd does not answer; at first, since the start.
  std::optional<std::chrono::system_clock::time_point> away_since_;
  std::string problem_;     // why it does not; empty: nothing is known yet
  bool lost_once_ = false;  // the log gets a line when etcd is back
  std::size_t asking_ = 0;  // tasks that ask after leases
  bool tending_ = false;
  bool stopped_ = false;
};

}  // namespace baton::fleet
