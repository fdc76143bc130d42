// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/kv_sockets.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace baton::sim {
namespace {

constexpr std::string_view kScheme = "tcp://";
// Like the engines: a subscriber may fall far behind before a batch is lost.
constexpr int kHighWater = 100000;
// The port after a free one may be taken; that is unlikely to happen often.
constexpr int kAttempts = 100;
constexpr std::uint32_t kMostPorts = 65535;

struct Address {
  std::string host;
  std::uint32_t port = 0;
};

std::optional<Address> parse(std::string_view endpoint) {
  const std::size_t colon = endpoint.rfind(':');
  if (!endpoint.starts_with(kScheme) || colon <= kScheme.size()) return std::nullopt;
  Address address{.host = std::string(endpoint.substr(kScheme.size(), colon - kScheme.size()))};
  const std::string_view port = endpoint.substr(colon + 1);
  if (port == "*") return address;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || end != port.data() + port.size() || address.port > kMostPorts) {
    return std::nullopt;
  }
  return address;
}

std::string text_of(const Address& address, std::uint32_t rank) {
  return fmt::format("{}{}:{}", kScheme, address.host, address.port + rank);
}

zmq::socket_t make_socket(zmq::context_t& context, zmq::socket_type type) {
  zmq::socket_t socket(context, type);
  socket.set(zmq::sockopt::linger, 0);
  // A replay may be longer than any feed: it is never cut.
  socket.set(zmq::sockopt::sndhwm, type == zmq::socket_type::router ? 0 : kHighWater);
  return socket;
}

RankSockets open_all(zmq::context_t& context, zmq::socket_type type, Address address,
                     std::uint32_t ranks, bool connect) {
  RankSockets out;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    zmq::socket_t socket = make_socket(context, type);
    if (connect) {
      socket.connect(text_of(address, rank));
    } else if (address.port == 0) {
      socket.bind(fmt::format("{}{}:*", kScheme, address.host));
      address.port = parse(socket.get(zmq::sockopt::last_endpoint))->port;
    } else {
      socket.bind(text_of(address, rank));
    }
    out.sockets.push_back(std::move(socket));
  }
  out.endpoint = text_of(address, 0);
  return out;
}

}  // namespace

Result<RankSockets> open_rank_sockets(zmq::context_t& context, zmq::socket_type type,
                                      const std::string& endpoint, std::uint32_t ranks,
                                      bool connect) {
  const auto address = parse(endpoint);
  if (!address || (connect && address->port == 0) || address->port + ranks - 1 > kMostPorts) {
    return fail(Errc::InvalidRequest,
                fmt::format("{}: must be tcp://HOST:PORT with room for {} ports", endpoint, ranks));
  }
  for (int attempt = 1;; ++attempt) {
    try {
      return open_all(context, type, *address, ranks, connect);
    } catch (const zmq::error_t& error) {
      if (address->port == 0 && attempt < kAttempts && error.num() == EADDRINUSE) continue;
      return fail(Errc::Internal, fmt::format("cannot {} {}: {}", connect ? "connect to" : "bind",
                                              endpoint, error.what()));
    }
  }
}

}  // namespace baton::sim
