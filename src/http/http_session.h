// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "core/cancellation.h"
#include "core/memory_budget.h"
#include "core/result.h"
#include "http/api_keys.h"
#include "http/client_limits.h"
#include "http/http_response.h"
#include "http/routes.h"
#include "net/connection.h"
#include "pipeline/limit_refusals.h"
#include "telemetry/metrics.h"
#include "wire/http_parser.h"

#include <boost/asio/awaitable.hpp>
#include <boost/intrusive/list.hpp>

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::http {

// Requests that ended before they reached a handler, by error.
struct HttpMetrics {
  explicit HttpMetrics(telemetry::Registry& registry);
  void count(const Error& error) {
    refused[static_cast<std::size_t>(error.code())]->add();
    limits.count(error);
  }
  // A listener leaves new connections to the kernel.
  void count_pause(Limit limit) {
    (limit == Limit::Descriptors ? pauses_for_descriptors : pauses_for_connections).add();
  }
  std::array<telemetry::Counter*, static_cast<std::size_t>(Errc::Internal) + 1> refused;
  telemetry::Counter& pauses_for_connections;
  telemetry::Counter& pauses_for_descriptors;
  telemetry::Gauge& connections;
  pipeline::LimitRefusals limits;
};

// State shared by all sessions of a listener.
struct SessionContext {
  const Routes& routes;
  const ApiKeys& keys;
  const config::Limits& limits;
  const config::Timeouts& timeouts;
  const config::Trust& trust;
  HttpMetrics& metrics;
  std::function<std::uint64_t()> random;
  ClientLimits* clients = nullptr;  // null: clients have no limits of their own
  MemoryBudget* memory = nullptr;   // null: bodies are not counted
};

// The client of a connection, as far as its address tells.
struct Peer {
  scheduling::Trusted trusted = scheduling::Trusted::No;
  bool loopback = false;   // this machine
  ClientId client = {};    // for limits of clients without a key
  bool only_open = false;  // over the limit: it may use open routes only
};

// Role. One client connection: reads requests one after the other, has each answered, keeps the
//   connection or ends it.
// Confinement. One I/O thread.
// Lifetime. Lives in its listener's task; linked into the listener's list meanwhile.
// Invariants. At most one request at a time is served; requests that a client sends ahead wait in
//   the kernel.
class HttpSession : public boost::intrusive::list_base_hook<
                        boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  HttpSession(net::Connection& connection, SessionContext& context, Peer peer)
      : connection_(connection), context_(context), peer_(peer) {}

  awaitable<void> run();

  // No request after the current one; an idle connection ends now. One whose request is arriving,
  // or may be on its way because it is the first, has kLastChance for all of it.
  void finish();
  // No request after the current one, or else after the next one, whose answer says so. A
  // connection that its client may be using is not closed.
  void retire() { closing_ = true; }
  // The current request ends as an error, too.
  void stop(const Error& reason);

  // How much the client would lose, least first: a session that waits for a request before one
  // whose request is arriving, then by the time at which each last began one. Nullopt: it is
  // answering.
  struct Expendable {
    bool arriving;
    std::chrono::steady_clock::time_point since;
    auto operator<=>(const Expendable&) const = default;
  };
  std::optional<Expendable> expendable() const;
  bool only_open() const { return peer_.only_open; }
  // Ends it now. Requires: expendable().
  void give_way();

 private:
  // Next step after a request was read: a handler, or the next request if it was answered already.
  struct Next {
    const Route* route = nullptr;
    bool keep_alive = false;
  };

  awaitable<Next> read_request();
  // nullopt: it is there. ClientGone: there will be none.
  awaitable<std::optional<Error>> read_head();
  awaitable<std::optional<Error>> read_body();
  void give_up_body();
  // Null where the answer is a list of methods.
  Result<const Route*> admit();
  // The number of the key; see ApiKeys::admit.
  Result<std::size_t> admit(Access access) const;
  // `patience`, or the time left if the session is about to end.
  std::chrono::milliseconds at_most(std::chrono::milliseconds patience) const;
  bool is_hurried() const { return last_chance_ != std::chrono::steady_clock::time_point::max(); }
  wire::HttpLimits http_limits() const;
  // Why nothing more of the request is waited for.
  Error too_late(Limit limit, std::string_view part) const;
  awaitable<bool> dispatch(const Route& route);
  awaitable<void> start(const Route& route, HttpResponse& response, Cancellation& cancellation);
  awaitable<Next> tell_options();
  awaitable<Next> refuse(Error error);
  awaitable<void> drain_body();
  HttpResponse::ResponseOptions response_options() const;
  std::string choose_request_id() const;

  net::Connection& connection_;
  SessionContext& context_;
  std::optional<wire::RequestParser> parser_;  // only while a request is read
  std::string ahead_;                          // bytes read but not yet parsed
  Cancellation* cancellation_ = nullptr;
  std::string request_id_;
  std::string client_;             // by its key
  ClientLimits::Request counted_;  // the request being read or answered
  MemoryShare memory_;             // of the body being read
  // When the request came, or else the connection.
  std::chrono::steady_clock::time_point received_ = std::chrono::steady_clock::now();
  // Once finish()ed: when a request must have arrived.
  std::chrono::steady_clock::time_point last_chance_ = std::chrono::steady_clock::time_point::max();
  Peer peer_;
  bool closing_ = false;
  bool fresh_ = true;  // no request has come yet
};

}  // namespace baton::http
