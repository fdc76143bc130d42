// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "front/listener.h"

#include "net/await.h"
#include "pipeline/error_body.h"

#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace baton::front {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using ReusePort = asio::detail::socket_option::boolean<SOL_SOCKET, SO_REUSEPORT>;

// Out of descriptors, say: pause, so that the loop does not eat the thread.
constexpr std::chrono::milliseconds kAcceptPause{100};

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
  if (error) return {.trusted = routing::trust_in(trust, "")};
  return {.trusted = routing::trust_in(trust, address.to_string()),
          .loopback = is_loopback(address),
          .client = ClientId::of_address(whole_address(address))};
}

}  // namespace

Result<tcp::acceptor> bind(asio::io_context& io, const model::Endpoint& address, Sharing sharing) {
  boost::system::error_code error;
  tcp::resolver resolver(io);
  const auto found =
      resolver.resolve(address.host, std::to_string(address.port), tcp::resolver::passive, error);
  if (error || found.empty()) return fail(cannot_listen(address, error));
  const tcp::endpoint endpoint = *found.begin();
  if (sharing == Sharing::First && address.port != 0) {
    // A socket that shares its port may join anybody's. One that does not tells whether it is free.
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
                   SessionContext context, Gate gate, asio::ssl::context* tls)
    : acceptor_(std::move(acceptor)),
      deadlines_(deadlines),
      tasks_(tasks),
      context_(std::move(context)),
      gate_(gate),
      tls_(tls) {}

void Listener::start() { tasks_.spawn(accept_loop()); }

void Listener::finish() {
  take_waiting();
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  for (auto it = sessions_.begin(); it != sessions_.end();) (it++)->finish();
}

// Their clients are connected, and may have sent a request: closing would answer it with a reset.
void Listener::take_waiting() {
  boost::system::error_code error;
  acceptor_.non_blocking(true, error);
  for (int i = 0; i < asio::socket_base::max_listen_connections && !error; ++i) {
    tcp::socket socket(acceptor_.get_executor());
    acceptor_.accept(socket, error);
    if (!error) tasks_.spawn(run_session(std::move(socket)));
  }
}

void Listener::stop(const Error& reason) {
  for (auto it = sessions_.begin(); it != sessions_.end();) (it++)->stop(reason);
}

void Listener::abort() {
  for (Guest& guest : guests_) guest.connection.abort();
}

awaitable<void> Listener::accept_loop() {
  while (acceptor_.is_open()) {
    auto [error, socket] = co_await acceptor_.async_accept(net::kAwait);
    if (!error) {
      tasks_.spawn(run_session(std::move(socket)));
    } else if (acceptor_.is_open()) {
      asio::steady_timer pause(acceptor_.get_executor(), kAcceptPause);
      co_await pause.async_wait(net::kAwait);
    }
  }
}

Listener::Guest::Guest(Listener& host, tcp::socket socket)
    : listener(host),
      connection(std::move(socket), host.deadlines_, host.tls_),
      number(host.gate_.open.fetch_add(1, std::memory_order_relaxed) + 1) {
  listener.context_.metrics.connections.add(1);
  listener.guests_.push_back(*this);
}

Listener::Guest::~Guest() {
  listener.context_.metrics.connections.add(-1);
  listener.gate_.open.fetch_sub(1, std::memory_order_relaxed);
}

awaitable<void> Listener::run_session(tcp::socket socket) {
  const Peer peer = peer_of(context_.trust, socket);
  Guest guest(*this, std::move(socket));
  if (auto objection = find_objection(guest, peer.client)) {
    co_await turn_away(guest.connection, *std::move(objection));
    co_return;
  }
  HttpSession session(guest.connection, context_, peer);
  sessions_.push_back(session);
  if (!acceptor_.is_open()) session.finish();  // accepted in the last moment
  co_await session.run();
}

std::optional<Error> Listener::find_objection(Guest& guest, ClientId client) const {
  if (guest.number > gate_.limit) {
    return Error(Errc::TooManyConnections,
                 fmt::format("there are already {} connections (limits.connections)", gate_.limit))
        .with_retry_after(std::chrono::seconds(1))
        .with_limit(Limit::Connections);
  }
  if (!context_.clients) return std::nullopt;
  auto counted = context_.clients->connect(client, std::chrono::steady_clock::now());
  if (!counted) return std::move(counted.error());
  guest.counted = *std::move(counted);
  return std::nullopt;
}

awaitable<void> Listener::turn_away(net::Connection& connection, Error error) {
  context_.metrics.count(error);
  // One client's own excess is not worth a handshake.
  if (tls_ && error.code() == Errc::RateLimited) co_return;
  const net::IoResult shaken = co_await connection.handshake(context_.timeouts.client_header);
  if (shaken.status == net::IoStatus::Ok) {
    HttpResponse response(
        connection,
        {.keep_alive = false, .request_id = {}, .write_timeout = context_.timeouts.client_write});
    co_await response.respond(error.http_status(), pipeline::error_headers(error),
                              pipeline::error_body(error));
    connection.end_writing();
    // Until the client has read it and closed, or for a moment: closing with its request unread
    // would reset the connection.
    std::array<char, 4096> sink;
    co_await connection.read_some(sink, kAcceptPause);
  }
  co_await connection.close();
}

}  // namespace baton::front
