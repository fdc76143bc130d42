// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "http/http_session.h"
#include "model/worker.h"
#include "net/deadlines.h"
#include "net/descriptor_budget.h"
#include "net/task_group.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/intrusive/list.hpp>

#include <atomic>
#include <cstddef>
#include <optional>

namespace baton::http {

// Resolves an address to the first endpoint of its name.
Result<boost::asio::ip::tcp::endpoint> resolve(boost::asio::io_context& io,
                                               const model::Endpoint& address);

// Binds an address. The threads of one process share it (SO_REUSEPORT, the kernel spreads
// connections over them); the First makes sure that no other process has it.
enum class Sharing { First, Further };
Result<boost::asio::ip::tcp::acceptor> bind(boost::asio::io_context& io,
                                            const model::Endpoint& address, Sharing sharing);

// Treatment of a new connection at the limit.
enum class WhenFull {
  TurnAway,
  CloseIdle,  // closes another one that waits for a request or for the rest of one
};

// Role. Accepts connections for one I/O thread and runs a session on each.
// Confinement. That thread.
// Lifetime. Must outlive its tasks; see TaskGroup.
// Invariants. At most 64 connections above the limit are there at a time, only to be told so; the
//   others wait in the kernel's backlog, as do those for which there are no descriptors. Neither
//   ends the listener, nor does it look for room more often than connections end, or ten times a
//   second.
class Listener {
 public:
  // Client connections of the whole process, and how many there may be.
  struct ConnectionLimit {
    std::atomic<std::size_t>& open;
    std::size_t limit;
    WhenFull when_full = WhenFull::TurnAway;
    net::DescriptorBudget* descriptors = nullptr;  // null: as many as there are
  };

  Listener(boost::asio::ip::tcp::acceptor acceptor, net::Deadlines& deadlines,
           net::TaskGroup& tasks, SessionContext context, ConnectionLimit limit,
           boost::asio::ssl::context* tls);

  void start();
  // Accepts only connections that the kernel has accepted already; sessions end after their current
  // request.
  void finish();
  // The same, but a session that waits for a request is left to wait for it: see
  // HttpSession::retire(). The socket itself stays open where another process has it as well.
  void retire();
  // Sessions end now, their requests as errors.
  void stop(const Error& reason);
  // Closes all connections now, also in the middle of an answer.
  void abort();

 private:
  // A client's connection, counted for as long as it is there.
  struct ActiveConnection : boost::intrusive::list_base_hook<
                                boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
    ActiveConnection(Listener& listener, boost::asio::ip::tcp::socket socket);
    ~ActiveConnection();
    Listener& listener;
    net::Connection connection;
    std::size_t number;  // how many there are, this one included
    ClientLimits::Connection counted;
  };

  awaitable<void> accept_loop();
  awaitable<void> run_session(boost::asio::ip::tcp::socket socket);
  // The limit that forbids accepting now.
  std::optional<Limit> find_shortage();
  // Waits for a moment, or until a connection of this listener ends.
  awaitable<void> pause(std::optional<Limit> shortage);
  std::size_t room() const;
  // Why a connection is not served; nullopt: it is, and counts.
  std::optional<Error> find_objection(ActiveConnection& active, int descriptor, Peer& peer);
  // Connections above the limit that may use open routes only.
  std::size_t probes() const;
  enum class Among { Usual, Probes };
  // The one of them that has waited longest for a request; false: none waits.
  bool close_idle(Among among);
  awaitable<void> turn_away(net::Connection& connection, Error error);
  void take_waiting();
  void close_socket();

  // Command to the sessions.
  enum class Ending { No, Retire, Finish };

  boost::asio::ip::tcp::acceptor acceptor_;
  net::Deadlines& deadlines_;
  net::TaskGroup& tasks_;
  SessionContext context_;
  ConnectionLimit limit_;
  boost::asio::ssl::context* tls_;
  boost::asio::steady_timer resume_;
  std::optional<Limit> paused_for_;
  Ending ending_ = Ending::No;
  std::size_t lowest_free_ = 0;  // descriptor, as far as the last connection told
  boost::intrusive::list<HttpSession, boost::intrusive::constant_time_size<false>> sessions_;
  boost::intrusive::list<ActiveConnection, boost::intrusive::constant_time_size<false>>
      connections_;
};

}  // namespace baton::http
