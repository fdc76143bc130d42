// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "engine/shared/introspection.h"
#include "fleet/fleet.h"
#include "http_client/upstream_pool.h"
#include "net/deadlines.h"
#include "net/task_group.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

namespace baton::fleet {

struct Options {
  config::Health health;
  config::Canary canary;
  config::Probe probe;
};

// Role. Probes the workers and updates their health: identifies new ones, checks whether
//   unreachable and ejected ones are back, and whether idle ones could still serve.
// Confinement. The control thread.
// Lifetime. Owned by Router; stop() and an empty TaskGroup before it ends.
// Invariants. Never more than a few questions at once and per second, however large the fleet. The
//   answer of a worker that was replaced meanwhile goes to the old one, and to no other.
class Watch {
 public:
  // One tiny hand-off through a worker and a partner of it; the error if it fails. A worker without
  // a partner passes.
  using SelfTest = std::function<boost::asio::awaitable<Result<void>>(
      const std::shared_ptr<Worker>&, const std::string& model)>;

  Watch(boost::asio::io_context& io, net::Deadlines& deadlines, net::TaskGroup& tasks, Fleet& fleet,
        http_client::PoolOptions pool, Options options, SelfTest self_test);

  void start();
  void stop();
  // The worker's facts about itself; null if it has not been asked, or has not answered.
  const engine::Facts* facts(model::WorkerId id) const;

 private:
  // A worker under observation.
  struct MonitoredWorker {
    std::shared_ptr<Worker> worker;
    std::string model;
    Time due;                  // not asked again before
    Time asked;                // when it last answered a question of ours
    bool asking = false;       // a question is under way
    bool probed = false;       // it has identified itself
    unsigned silences = 0;     // questions without any answer, in a row
    std::size_t canaries = 0;  // that failed, in a row
    Time canary;               // when the last one was sent
    Time cards;                // when it was last asked for its models
    engine::Facts facts;
  };
  // The next check a worker is due for.
  enum class Need { Nothing, Look, Probe, Canary, Models };

  void observe(const std::shared_ptr<Worker>& worker, const std::string& model);
  boost::asio::awaitable<void> watch();
  void make_rounds();
  bool must_be_asked(const MonitoredWorker& monitored) const;
  Need need_of(const MonitoredWorker& monitored, Time now) const;
  void ask(MonitoredWorker& monitored, Need need);
  boost::asio::awaitable<void> attend(std::uint64_t id, Need need);
  // Whether it is there; and its identity, if that is not known yet.
  boost::asio::awaitable<void> look(MonitoredWorker monitored, Need need);
  boost::asio::awaitable<bool> admit(MonitoredWorker& monitored);
  // Which adapters it has loaded meanwhile.
  boost::asio::awaitable<void> ask_models(MonitoredWorker monitored);
  boost::asio::awaitable<void> send_canary(MonitoredWorker monitored);
  // Records the result, unless the worker has gone meanwhile.
  bool outdated(const MonitoredWorker& monitored) const;
  template <class Write>
  void note(model::WorkerId id, Write write);

  net::TaskGroup& tasks_;
  Fleet& fleet_;
  const Options options_;
  SelfTest self_test_;
  http_client::UpstreamPool pool_;
  boost::asio::steady_timer timer_;
  std::unordered_map<std::uint64_t, MonitoredWorker> monitored_;  // by worker
  std::uint64_t turn_ = 0;                                        // where the next round begins
  std::size_t under_way_ = 0;
  double allowance_ = 0;  // questions to workers that are well
  Time last_round_ = Clock::now();
  bool stopped_ = false;
};

}  // namespace baton::fleet
