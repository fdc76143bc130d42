// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http/listener.h"

#include "net/await.h"
#include "pipeline/error_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <unistd.h>
#include <utility>

namespace baton::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using ReusePort = asio::detail::socket_option::boolean<SOL_SOCKET, SO_REUSEPORT>;

// Pause between attempts to accept while there is no room.
constexpr std::chrono::milliseconds kAcceptPause{100};
// Time for a refused client to read the reason.
constexpr std::chrono::milliseconds kLastRead{100};
// Number of connections above the limit that are answered at a time.
constexpr std::size_t kTurnedAway = 64;
// Extra connections for health probes, if idle connections are closed for new ones but all are
// busy.
constexpr std::size_t kProbeReserve = 16;

Error cannot_listen(const model::Endpoint& address, const boost::system::error_code& error) {
  const std::string hint =
      error == asio::error::address_in_use
          ? "; another process has it: choose another port, or 0 for a free one"
          : "";
  return Error(Errc::Internal, fmt::format("cannot listen on {}: {}{}", address.to_string(),
                                           error.message(), hint));
}

bool is_loopback(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback();
  return address.is_loopback();
}

model::Address whole_address(const asio::ip::address& address) {
  if (address.is_v6()) return address.to_v6().to_bytes();
  return asio::ip::make_address_v6(asio::ip::v4_mapped, address.to_v4()).to_bytes();
}

Peer peer_of(const config::Trust& trust, const tcp::socket& socket) {
  boost::system::error_code error;
  const auto address = socket.remote_endpoint(error).address();
  if (error) return {.trusted = scheduling::trust_in(trust, "")};
  return {.trusted = scheduling::trust_in(trust, address.to_string()),
          .loopback = is_loopback(address),
          .client = ClientId::of_address(whole_address(address))};
}

}  // namespace

Result<tcp::endpoint> resolve(asio::io_context& io, const model::Endpoint& address) {
  boost::system::error_code error;
  tcp::resolver resolver(io);
  const auto found =
      resolver.resolve(address.host, std::to_string(address.port), tcp::resolver::passive, error);
  if (error || found.empty()) return fail(cannot_listen(address, error));
  return found.begin()->endpoint();
}

Result<tcp::acceptor> bind(asio::io_context& io, const model::Endpoint& address, Sharing sharing) {
  const auto resolved = resolve(io, address);
  if (!resolved) return fail(resolved.error());
  const tcp::endpoint& endpoint = *resolved;
  boost::system::error_code error;
  if (sharing == Sharing::First && address.port != 0) {
    // A socket that shares its port may join any other's. One that does not tells whether it is
    // free.
    tcp::acceptor alone(io);
    alone.open(endpoint.protocol(), error);
    if (!error) alone.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) alone.bind(endpoint, error);
    if (error) return fail(cannot_listen(address, error));
  }
  tcp::acceptor acceptor(io);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.set_option(ReusePort(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return fail(cannot_listen(address, error));
  return acceptor;
}

Listener::Listener(tcp::acceptor acceptor, net::Deadlines& deadlines, net::TaskGroup& tasks,
                   SessionContext context, ConnectionLimit limit, asio::ssl::context* tls)
    : acceptor_(std::move(acceptor)),
      deadlines_(deadlines),
      tasks_(tasks),
      context_(std::move(context)),
      limit_(limit),
      tls_(tls),
      resume_(acceptor_.get_executor()) {}

void Listener::start() { tasks_.spawn(accept_loop()); }

void Listener::finish() {
  ending_ = Ending::Finish;
  close_socket();
  for (auto it = sessions_.begin(); it != sessions_.end();) (it++)->finish();
}

void Listener::retire() {
  ending_ = Ending::Retire;
  close_socket();
  for (HttpSession& session : sessions_) session.retire();
}

void Listener::close_socket() {
  if (!acceptor_.is_open()) return;
  take_waiting();
  // Taken out of the reactor first: the kernel does not do that by itself for a socket that another
  // process has as well, and would go on to tell of its connections.
  boost::system::error_code error;
  const int descriptor = acceptor_.release(error);
  if (!error) ::close(descriptor);
  resume_.cancel();
}

// Their clients are connected, and may have sent a request: closing would answer it with a reset.
void Listener::take_waiting() {
  boost::system::error_code error;
  acceptor_.non_blocking(true, error);
  for (std::size_t left = room(); left > 0 && !error; --left) {
    tcp::socket socket(acceptor_.get_executor());
    acceptor_.accept(socket, error);
    if (!error) tasks_.spawn(run_session(std::move(socket)));
  }
}

void Listener::stop(const Error& reason) {
  for (auto it = sessions_.begin(); it != sessions_.end();) (it++)->stop(reason);
}

void Listener::abort() {
  for (ActiveConnection& active : connections_) active.connection.abort();
}

awaitable<void> Listener::accept_loop() {
  while (acceptor_.is_open()) {
    std::optional<Limit> shortage = find_shortage();
    if (!shortage) {
      auto [error, socket] = co_await acceptor_.async_accept(net::kAwait);
      if (!error) {
        lowest_free_ = static_cast<std::size_t>(socket.native_handle()) + 1;
        paused_for_.reset();
        tasks_.spawn(run_session(std::move(socket)));
        continue;
      }
      if (!acceptor_.is_open()) break;
      if (net::is_lack_of_descriptors(error)) {
        shortage = Limit::Descriptors;
        if (limit_.when_full == WhenFull::CloseIdle && !close_idle(Among::Probes))
          close_idle(Among::Usual);
      }
    }
    co_await pause(shortage);
  }
}

std::size_t Listener::room() const {
  const std::size_t open = limit_.open.load(std::memory_order_relaxed);
  const std::size_t most = limit_.limit + kTurnedAway;
  return most > open ? most - open : 0;
}

std::optional<Limit> Listener::find_shortage() {
  if (room() == 0) return Limit::Connections;
  if (!limit_.descriptors || limit_.when_full == WhenFull::CloseIdle) return std::nullopt;
  const std::size_t clients = limit_.open.load(std::memory_order_relaxed);
  if (limit_.descriptors->has_room_for_client(lowest_free_, clients)) return std::nullopt;
  // Others may have been closed since.
  const auto lowest = net::lowest_free_descriptor(acceptor_.native_handle());
  if (lowest) lowest_free_ = static_cast<std::size_t>(*lowest);
  if (lowest && limit_.descriptors->has_room_for_client(lowest_free_, clients)) return std::nullopt;
  return Limit::Descriptors;
}

awaitable<void> Listener::pause(std::optional<Limit> shortage) {
  if (shortage && paused_for_ != shortage) context_.metrics.count_pause(*shortage);
  paused_for_ = shortage;
  if (shortage == Limit::Descriptors && limit_.descriptors)
    limit_.descriptors->went_short("client connections");
  resume_.expires_after(kAcceptPause);
  co_await resume_.async_wait(net::kAwait);
}

Listener::ActiveConnection::ActiveConnection(Listener& host, tcp::socket socket)
    : listener(host),
      connection(std::move(socket), host.deadlines_, host.tls_),
      number(host.limit_.open.fetch_add(1, std::memory_order_relaxed) + 1) {
  listener.context_.metrics.connections.add(1);
  listener.connections_.push_back(*this);
}

Listener::ActiveConnection::~ActiveConnection() {
  listener.context_.metrics.connections.add(-1);
  listener.limit_.open.fetch_sub(1, std::memory_order_relaxed);
  if (listener.paused_for_) listener.resume_.cancel();
}

awaitable<void> Listener::run_session(tcp::socket socket) {
  Peer peer = peer_of(context_.trust, socket);
  const int descriptor = socket.native_handle();
  ActiveConnection active(*this, std::move(socket));
  if (auto objection = find_objection(active, descriptor, peer)) {
    co_await turn_away(active.connection, *std::move(objection));
    co_return;
  }
  HttpSession session(active.connection, context_, peer);
  sessions_.push_back(session);
  // Accepted in the last moment.
  if (ending_ == Ending::Finish) session.finish();
  if (ending_ == Ending::Retire) session.retire();
  co_await session.run();
}

std::optional<Error> Listener::find_objection(ActiveConnection& active, int descriptor,
                                              Peer& peer) {
  const bool closes_idle = limit_.when_full == WhenFull::CloseIdle;
  const bool too_many =
      active.number > limit_.limit && !(closes_idle && active.number - probes() <= limit_.limit);
  if (too_many && !(closes_idle && close_idle(Among::Usual))) {
    // A probe that waits has no place that another request could have, but a probe could.
    if (closes_idle &&
        (active.number <= limit_.limit + kProbeReserve || close_idle(Among::Probes))) {
      peer.only_open = true;
      return std::nullopt;
    }
    return Error(Errc::TooManyConnections,
                 fmt::format("there are already {} connections (limits.connections)", limit_.limit))
        .with_retry_after(std::chrono::seconds(1))
        .with_limit(Limit::Connections);
  }
  // It was accepted by the descriptors free when accepting began. One above the clients' share is
  // served, before the next check; one that has a descriptor of the admin address's is not.
  if (!closes_idle && limit_.descriptors &&
      !limit_.descriptors->allows(net::DescriptorUse::Control, descriptor)) {
    return Error(Errc::OutOfResources, "the router has no descriptors for more connections")
        .with_retry_after(std::chrono::seconds(1))
        .with_limit(Limit::Descriptors);
  }
  if (!context_.clients) return std::nullopt;
  auto counted = context_.clients->connect(peer.client, std::chrono::steady_clock::now());
  if (!counted) return std::move(counted.error());
  active.counted = *std::move(counted);
  return std::nullopt;
}

std::size_t Listener::probes() const {
  return static_cast<std::size_t>(std::ranges::count_if(sessions_, &HttpSession::only_open));
}

bool Listener::close_idle(Among among) {
  HttpSession* first = nullptr;
  std::optional<HttpSession::Expendable> best;
  for (HttpSession& session : sessions_) {
    if (session.only_open() != (among == Among::Probes)) continue;
    const auto found = session.expendable();
    if (!found || (best && *best <= *found)) continue;
    best = found;
    first = &session;
  }
  if (first) first->give_way();
  return first != nullptr;
}

awaitable<void> Listener::turn_away(net::Connection& connection, Error error) {
  context_.metrics.count(error);
  if (tls_) co_return;  // the answer would cost a handshake, which is dearer than a request
  HttpResponse response(
      connection,
      {.keep_alive = false, .request_id = {}, .write_timeout = context_.timeouts.client_write});
  co_await response.respond(error.http_status(), pipeline::error_headers(error),
                            pipeline::error_body(error));
  connection.end_writing();
  // Until the client has read it and closed, or for a moment: closing with its request unread
  // would reset the connection.
  std::array<char, 4096> sink;
  co_await connection.read_some(sink, kLastRead);
  co_await connection.close();
}

}  // namespace baton::http
