// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace baton::http_client {

// Role. Resolves host names to addresses. The system's look-up (getaddrinfo) cannot be interrupted:
//   a name server that does not answer holds it for many seconds. So a wait can be abandoned; the
//   look-up then ends by itself, and its result serves the next request.
// Confinement. One I/O thread.
// Lifetime. A look-up in progress owns what it needs, and may outlive the Resolver.
// Invariants. At most one look-up of a name is in progress; all waits for that name share it. A
//   result is used for kFresh, or until forget(); a failure is never kept.
class Resolver {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;
  struct Found {
    boost::system::error_code error;
    std::vector<boost::asio::ip::address> addresses;
  };
  using Done = std::function<void(Found found)>;
  // Calls `done` once, at once or later, on the same I/O thread.
  using Lookup = std::function<void(const std::string& host, Done done)>;

  static constexpr std::chrono::seconds kFresh{5};

  // With the system's look-up.
  explicit Resolver(boost::asio::io_context& io);
  explicit Resolver(Lookup lookup, Now now = Clock::now);

  // One wait for a name.
  class Wait : public boost::intrusive::list_base_hook<
                   boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
   public:
    explicit Wait(boost::asio::io_context& io);
    // The wait ends with operation_aborted, now or as soon as it begins.
    void abandon();

   private:
    friend class Resolver;
    void finish(Found found);

    boost::asio::steady_timer over_;
    bool finished_ = false;
    Found found_;
  };
  // `host` may also be an address. Requires: `wait` is used once.
  boost::asio::awaitable<Found> resolve(std::string host, Wait& wait);
  // None of its addresses could be used: the next wait looks it up again.
  void forget(const std::string& host);

 private:
  struct State;

  const Lookup lookup_;
  const Now now_;
  const std::shared_ptr<State> state_;
};

}  // namespace baton::http_client
