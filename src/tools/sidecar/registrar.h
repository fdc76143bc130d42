// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/shared/health_check.h"
#include "etcd/client.h"
#include "etcd/options.h"
#include "http_client/upstream_pool.h"
#include "model/worker.h"
#include "net/deadlines.h"
#include "net/task_group.h"
#include "telemetry/log.h"
#include "tools/sidecar/introduction.h"
#include "tools/sidecar/registration.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>

namespace baton::sidecar {

struct RegistrarOptions {
  model::Endpoint engine;     // where it is asked; where others find it stands in the introduction
  Introduction introduction;  // without an instance: one is made up
  std::string prefix;
  std::chrono::seconds ttl{10};
  std::chrono::milliseconds health_interval{2'000};
  std::chrono::milliseconds timeout{5'000};  // for one answer of the engine
  std::chrono::milliseconds drain{30'000};
  std::chrono::milliseconds settle{1'000};  // how long the engine must be idle to be called so
};

// Role. The life of one stock engine in etcd: waits until it is healthy, asks it what it is,
//   announces it, withdraws it while it is away, and drains it at the end.
// Confinement. One I/O thread.
// Lifetime. run() has returned and `tasks` is empty before it ends.
// Invariants. The engine is announced only while it is healthy. An engine that returns after its
//   port was closed is another process, and gets another instance. Only two waits have no limit,
//   for the engine and for etcd to come back, and leave() ends them.
class Registrar {
 public:
  Registrar(boost::asio::io_context& io, net::Deadlines& deadlines, net::TaskGroup& tasks,
            etcd::Options etcd, RegistrarOptions options, std::function<void()> on_registered,
            telemetry::Logger& log);

  // Returns after leave(), with nothing left in etcd unless etcd is away; or with what is wrong
  // where the engine is not what is said of it.
  boost::asio::awaitable<std::expected<void, std::string>> run();
  // Drains and withdraws. The second call takes the time for neither.
  void leave();

 private:
  using Clock = std::chrono::steady_clock;
  enum class Leaving { No, Drain, Now };
  // Result of asking the engine; nullopt if it went away meanwhile.
  using Introduced = std::expected<std::optional<model::Announcement>, std::string>;

  boost::asio::awaitable<std::expected<void, std::string>> attend();
  boost::asio::awaitable<void> await_engine();
  boost::asio::awaitable<Introduced> ask_engine();
  void announce(model::Announcement announcement);
  // Until its health is lost.
  boost::asio::awaitable<void> watch_engine();
  boost::asio::awaitable<bool> is_another();
  boost::asio::awaitable<engine::HealthResult> check();
  boost::asio::awaitable<void> drain();
  boost::asio::awaitable<void> withdraw();
  boost::asio::awaitable<void> keep_registered();
  // For that long, or until leave() or the end of the registration.
  boost::asio::awaitable<void> pause(std::chrono::milliseconds time);
  void say_waiting(const std::string& why);
  http_client::Target target() const { return {.id = {1}, .endpoint = options_.engine}; }
  const model::WorkerSpec& spec() const { return options_.introduction.announcement.spec; }
  Registration::Entry entry() const;

  net::TaskGroup& tasks_;
  const RegistrarOptions options_;
  telemetry::Logger& log_;
  http_client::UpstreamPool pool_;
  etcd::Client client_;
  Registration registration_;
  boost::asio::steady_timer timer_;
  std::string instance_;
  std::optional<model::Announcement> announced_;
  bool was_announced_ = false;
  bool process_ended_ = false;  // since it was announced
  bool waiting_said_ = false;
  bool registration_over_ = false;
  Leaving leaving_ = Leaving::No;
};

}  // namespace baton::sidecar
