// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http_client/connector.h"

#include "net/await.h"

#include <boost/asio/error.hpp>
#include <fmt/format.h>

#include <netinet/tcp.h>
#include <optional>
#include <sys/socket.h>
#include <system_error>
#include <utility>

namespace baton::http_client {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

Resolver resolver_of(asio::io_context& io, const PoolOptions& options) {
  return options.lookup ? Resolver(options.lookup) : Resolver(io);
}

void probe_silence(tcp::socket& socket) {
  const auto set = [&socket](int level, int option, int value) {
    ::setsockopt(socket.native_handle(), level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);  // seconds
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

std::string handshake_problem(const net::Connection& connection) {
  const std::string refused = connection.certificate_problem();
  if (!refused.empty()) return fmt::format("its certificate is not accepted: {}", refused);
  return fmt::format("TLS handshake failed: {}", connection.error());
}

}  // namespace

// One attempt to connect, and how far it got.
struct Connector::Attempt {
  explicit Attempt(asio::io_context& io) : lookup(io), socket(io) {}
  void stop() {
    error_code ignored;
    stopped = true;
    lookup.abandon();
    socket.close(ignored);
    if (upstream) upstream->connection.abort();
  }

  Resolver::Wait lookup;
  tcp::socket socket;
  std::unique_ptr<Upstream> upstream;  // has the socket once it is connected
  Phase phase = Phase::Connect;
  bool timed_out = false;
  bool stopped = false;
};

Connector::Connector(asio::io_context& io, net::Deadlines& deadlines, const PoolOptions& options,
                     std::function<bool()> make_room)
    : io_(io),
      deadlines_(deadlines),
      options_(options),
      make_room_(std::move(make_room)),
      resolver_(resolver_of(io, options)) {}

error_code Connector::open(tcp::socket& socket, const tcp& protocol) {
  while (true) {
    error_code error;
    socket.open(protocol, error);
    if (!error && (!options_.descriptors ||
                   options_.descriptors->allows(options_.use, socket.native_handle())))
      return error;
    if (error && !net::is_local_fault(error)) return error;
    error_code ignored;
    socket.close(ignored);
    if (!make_room_()) return error ? error : error_code(asio::error::no_descriptors);
  }
}

awaitable<Result<std::unique_ptr<Upstream>>> Connector::connect(Target target,
                                                                Cancellation* cancellation,
                                                                ExchangeFailure* failure) {
  if (shut_down_) co_return fail(Errc::ShuttingDown, "the router is shutting down");
  Attempt attempt(io_);
  net::Deadline deadline(deadlines_, [&attempt] {
    attempt.timed_out = true;
    attempt.stop();
  });
  deadline.arm(options_.connect_timeout);
  std::optional<Cancellation::Listener> listener;
  if (cancellation) listener.emplace(*cancellation, [&attempt] { attempt.stop(); });

  error_code error;
  const auto address = asio::ip::make_address(target.endpoint.host, error);
  if (!error) {
    const tcp::endpoint endpoint(address, target.endpoint.port);
    error = open(attempt.socket, endpoint.protocol());
    if (!error) {
      const auto [failed] = co_await attempt.socket.async_connect(endpoint, net::kAwait);
      error = failed;
    }
  } else {
    error = co_await connect_by_name(attempt, target.endpoint);
  }

  std::string why = error ? error.message() : std::string();
  if (!error && !attempt.stopped) {
    if (options_.probe_silence) probe_silence(attempt.socket);
    attempt.upstream = std::make_unique<Upstream>(std::move(attempt.socket), deadlines_, options_,
                                                  target.tls ? &target.tls->context : nullptr);
    if (target.tls) {
      attempt.phase = Phase::Tls;
      const std::string& name = target.tls->server_name;
      net::Connection& connection = attempt.upstream->connection;
      const net::IoResult shaken = co_await connection.handshake_with(
          name.empty() ? target.endpoint.host : name, options_.connect_timeout);
      if (shaken.status != net::IoStatus::Ok) why = handshake_problem(connection);
    }
  }
  if (!error && why.empty() && !attempt.stopped) co_return std::move(attempt.upstream);
  const bool cancelled = cancellation && cancellation->requested();
  if (failure) {
    *failure = {.phase = attempt.phase,
                .status = cancelled           ? net::IoStatus::Aborted
                          : attempt.timed_out ? net::IoStatus::Timeout
                                              : net::IoStatus::Failed,
                .why = why};
  }
  if (cancelled) co_return fail(cancellation->reason());
  co_return fail(explain(attempt, target, error, why));
}

awaitable<error_code> Connector::connect_by_name(Attempt& attempt,
                                                 const model::Endpoint& endpoint) {
  tcp::socket& socket = attempt.socket;
  // A resolver without descriptors may say that there is no such name.
  error_code error = open(socket, tcp::v4());
  if (error && net::is_local_fault(error)) co_return error;
  attempt.phase = Phase::Resolve;
  const Resolver::Found found = co_await resolver_.resolve(endpoint.host, attempt.lookup);
  const bool short_of_them =
      socket.is_open() && !net::lowest_free_descriptor(socket.native_handle());
  if (found.error && short_of_them) co_return asio::error::no_descriptors;
  error = found.error;
  if (!error && found.addresses.empty()) error = asio::error::host_not_found;
  for (const asio::ip::address& address : found.addresses) {
    if (attempt.stopped) break;
    attempt.phase = Phase::Connect;
    const tcp::endpoint candidate(address, endpoint.port);
    error_code ignored;
    socket.close(ignored);
    error = open(socket, candidate.protocol());
    if (error && net::is_local_fault(error)) break;
    if (error) continue;
    const auto [failed] = co_await socket.async_connect(candidate, net::kAwait);
    error = failed;
    if (!error) break;
  }
  // It may have moved.
  if (error && !net::is_local_fault(error)) resolver_.forget(endpoint.host);
  co_return error;
}

Error Connector::explain(const Attempt& attempt, const Target& target, const error_code& error,
                         const std::string& why) {
  if (!attempt.timed_out && net::is_local_fault(error))
    return out_of_resources(target.endpoint, error);
  Error unreachable(Errc::EngineUnreachable,
                    fmt::format("worker {} cannot be reached: {}", target.endpoint.to_string(),
                                attempt.timed_out ? fmt::format("no connection within {} ms",
                                                                options_.connect_timeout.count())
                                                  : why));
  // The host is there, but nothing listens on the port or the listener is being closed. Watchers
  // of workers need to know.
  if (!attempt.timed_out && error == asio::error::connection_refused)
    unreachable.with_cause(std::errc::connection_refused);
  if (!attempt.timed_out && error == asio::error::connection_reset)
    unreachable.with_cause(std::errc::connection_reset);
  return unreachable;
}

Error Connector::out_of_resources(const model::Endpoint& endpoint, const error_code& error) {
  Error lack(
      Errc::OutOfResources,
      fmt::format("the router's own machine has nothing left for a connection to worker {}: {}",
                  endpoint.to_string(), error.message()));
  lack.with_retry_after(std::chrono::seconds(1));
  if (!net::is_lack_of_descriptors(error)) return lack;
  if (options_.descriptors) options_.descriptors->went_short("connections to workers");
  return lack.with_limit(Limit::Descriptors);
}

}  // namespace baton::http_client
