// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "etcd/client.h"
#include "telemetry/log.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>

namespace baton::sidecar {

// Role. Keeps one key in etcd under its own lease at the value that its owner sets, however often
//   etcd goes away, forgets the lease, or loses its data.
// Confinement. One I/O thread.
// Lifetime. run() has returned before it ends; the client outlives it.
// Invariants. Level-triggered: each step follows from the wanted and the present state, see
//   next_step. A key is withdrawn by ending its lease, so nothing that was written under it stays.
//   Each change is logged once.
class Registration {
 public:
  struct Entry {
    std::string key;
    std::string value;
    bool operator==(const Entry&) const = default;
  };

  // `on_registered` is told whenever etcd has taken a key.
  Registration(boost::asio::io_context& io, etcd::Client& client, std::chrono::seconds ttl,
               std::function<void()> on_registered, telemetry::Logger& log);

  // From now on this, and nothing else of ours, is to be in etcd.
  void want(Entry entry);
  void want_nothing();
  // Nothing is wanted any more; run() returns when nothing is left.
  void finish();
  // Sees to it until finish(), or until the client is stopped.
  boost::asio::awaitable<void> run();

  // etcd has what is wanted, as far as we know.
  bool settled() const;
  // etcd does not do what it is asked for.
  bool stalled() const { return stalled_.has_value(); }
  // The key that may still be in etcd; null: none.
  const std::string* held_key() const { return lease_ ? &lease_->key : nullptr; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Step { Rest, Grant, Put, KeepAlive, Revoke };
  struct Lease {
    std::int64_t id = 0;
    std::chrono::seconds ttl{0};
    std::string key;               // what it was granted for
    std::optional<Entry> written;  // what etcd has taken under it
    Clock::time_point due;         // when it is kept alive next
    Clock::time_point over;        // when it has ended by itself, if nothing is done
  };

  Step next_step(Clock::time_point now) const;
  boost::asio::awaitable<etcd::Reply<void>> take(Step step);
  boost::asio::awaitable<etcd::Reply<void>> grant();
  boost::asio::awaitable<etcd::Reply<void>> put();
  boost::asio::awaitable<etcd::Reply<void>> keep_alive();
  boost::asio::awaitable<etcd::Reply<void>> revoke();
  void prolong(std::chrono::seconds left);
  void note(const etcd::Reply<void>& reply);
  // Until then, or until something else is wanted.
  boost::asio::awaitable<void> rest(Clock::time_point until);
  std::chrono::milliseconds back_off();

  etcd::Client& client_;
  const std::chrono::seconds ttl_;
  std::function<void()> on_registered_;
  telemetry::Logger& log_;
  boost::asio::steady_timer timer_;
  std::minstd_rand random_;
  std::optional<Entry> wanted_;
  std::optional<Lease> lease_;
  std::optional<etcd::Reason> stalled_;  // why the last step failed
  std::chrono::milliseconds pause_;
  bool finishing_ = false;
};

}  // namespace baton::sidecar
