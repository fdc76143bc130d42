// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// The sockets a router listens on: those it was started with, and those it binds.
#include "app/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace baton::app {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// `shared`: another acceptor has the socket as well.
Result<tcp::acceptor> adopt_socket(asio::io_context& io, const InheritedSocket& socket,
                                   bool shared) {
  const int descriptor =
      shared ? ::fcntl(socket.descriptor, F_DUPFD_CLOEXEC, 0) : socket.descriptor;
  tcp::acceptor acceptor(io);
  boost::system::error_code error;
  if (descriptor < 0) error.assign(errno, boost::system::system_category());
  if (!error) acceptor.assign(socket.bound.protocol(), descriptor, error);
  if (error) {
    return fail(Errc::Internal, fmt::format("cannot use an inherited socket: {}", error.message()));
  }
  return acceptor;
}

model::Endpoint local_endpoint(const tcp::acceptor& acceptor, const model::Endpoint& asked) {
  return {asked.host, acceptor.local_endpoint().port()};
}

}  // namespace

Result<void> Router::make_threads() {
  const config::Config& config = services_.config;
  const std::size_t count =
      config.threads != 0 ? config.threads : std::max(1U, std::thread::hardware_concurrency());
  for (std::size_t i = 0; i < count; ++i) threads_.push_back(std::make_unique<IoThread>(services_));
  const auto asked = http::resolve(control_, config.listen);
  if (!asked) return fail(asked.error());
  auto sockets = inherited_.take(kClientSocket, *asked);
  auto acceptors = sockets.empty() ? bind_anew() : adopt(std::move(sockets));
  if (!acceptors) return fail(std::move(acceptors.error()));
  address_ = local_endpoint(acceptors->front(), config.listen);
  acceptors_.resize(count);
  for (std::size_t i = 0; i < acceptors->size(); ++i)
    acceptors_[i % count].push_back(std::move((*acceptors)[i]));
  return {};
}

Result<Router::Acceptors> Router::bind_anew() {
  const config::Config& config = services_.config;
  Acceptors acceptors;
  model::Endpoint address = config.listen;
  for (const auto& thread : threads_) {
    auto acceptor = http::bind(thread->io(), address,
                               acceptors.empty() ? http::Sharing::First : http::Sharing::Further);
    if (!acceptor) return fail(std::move(acceptor.error()));
    address =
        local_endpoint(*acceptor, config.listen);  // port 0: the others take the port of the first
    listening_.push_back({std::string(kClientSocket), acceptor->native_handle()});
    acceptors.push_back(std::move(*acceptor));
  }
  return acceptors;
}

// Every inherited socket needs an acceptor, or it loses the connections that the kernel gives it.
// No further socket is bound: it would get connections at once, and lose them if this process did
// not take over.
Result<Router::Acceptors> Router::adopt(std::vector<InheritedSocket> sockets) {
  Acceptors acceptors;
  for (const InheritedSocket& socket : sockets)
    listening_.push_back({std::string(kClientSocket), socket.descriptor});
  for (std::size_t i = 0; i < std::max(sockets.size(), threads_.size()); ++i) {
    const InheritedSocket& socket = sockets[i % sockets.size()];
    const bool shared = i >= sockets.size();
    auto acceptor = adopt_socket(threads_[i % threads_.size()]->io(), socket, shared);
    if (!acceptor) return fail(std::move(acceptor.error()));
    acceptors.push_back(std::move(*acceptor));
  }
  return acceptors;
}

Result<tcp::acceptor> Router::make_admin_acceptor(const model::Endpoint& address) {
  const auto asked = http::resolve(control_, address);
  if (!asked) return fail(asked.error());
  const auto sockets = inherited_.take(kAdminSocket, *asked);
  auto acceptor = sockets.empty() ? http::bind(control_, address, http::Sharing::First)
                                  : adopt_socket(control_, sockets.front(), false);
  if (!acceptor) return acceptor;
  listening_.push_back({std::string(kAdminSocket), acceptor->native_handle()});
  admin_address_ = local_endpoint(*acceptor, address);
  return acceptor;
}

void Router::close_unused_sockets() {
  for (const InheritedSocket& socket : inherited_.sockets) {
    log_.warning(
        "socket_unused",
        {{"name", socket.name},
         {"address",
          model::Endpoint{socket.bound.address().to_string(), socket.bound.port()}.to_string()}});
    ::close(socket.descriptor);
  }
  for (const std::string& name : inherited_.unusable)
    log_.warning("socket_unused", {{"name", name}, {"address", "none"}});
  inherited_ = {};
}

void Router::say_what_fits(int open) {
  const auto own = net::lowest_free_descriptor(open);
  const std::size_t fit =
      own ? services_.descriptors.clients_that_fit(static_cast<std::size_t>(*own)) : 0;
  const std::size_t wanted = services_.config.limits.connections;
  if (fit >= wanted) return;
  log_.warning("descriptors_few",
               {{"limit", static_cast<std::int64_t>(services_.descriptors.limit())},
                {"connections", static_cast<std::int64_t>(wanted)},
                {"fit", static_cast<std::int64_t>(fit)},
                {"hint", "raise ulimit -n, or lower limits.connections"}});
}

}  // namespace baton::app
