// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/upstream_pool.h"

#include "net/await.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <fmt/format.h>

#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace baton::engine {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
constexpr std::chrono::seconds kSweepEvery{5};

}  // namespace

UpstreamPool::UpstreamPool(asio::io_context& io, net::Deadlines& deadlines, PoolOptions options)
    : io_(io), deadlines_(deadlines), sweep_(deadlines, [this] { sweep(); }), options_(options) {
  sweep_.arm(kSweepEvery);
}

// Workers close what they find idle for long; half-closed connections are descriptors for nothing.
void UpstreamPool::sweep() {
  for (auto& [worker, idle] : idle_) {
    std::erase_if(idle, [](const auto& upstream) { return upstream->connection.stale(); });
  }
  std::erase_if(idle_, [](const auto& known) { return known.second.empty(); });
  sweep_.arm(kSweepEvery);
}

std::size_t UpstreamPool::idle_count() const {
  std::size_t count = 0;
  for (const auto& [worker, idle] : idle_) count += idle.size();
  return count;
}

std::unique_ptr<Upstream> UpstreamPool::take_idle(const Target& target) {
  const auto found = idle_.find(target.id.value);
  if (found == idle_.end()) return nullptr;
  auto& idle = found->second;
  while (!idle.empty()) {
    std::unique_ptr<Upstream> upstream = std::move(idle.back());
    idle.pop_back();
    if (!upstream->connection.stale()) return upstream;
  }
  return nullptr;
}

void UpstreamPool::give_back(model::WorkerId worker, std::unique_ptr<Upstream> upstream) {
  if (shut_down_ || options_.idle_per_worker == 0) return;
  auto& idle = idle_[worker.value];
  if (idle.size() >= options_.idle_per_worker) return;
  upstream->parser.next();
  idle.push_back(std::move(upstream));
}

void UpstreamPool::shut_down() {
  shut_down_ = true;
  idle_.clear();
  for (auto it = holders_.begin(); it != holders_.end();) (it++)->drop();
}

awaitable<Result<std::unique_ptr<Upstream>>> UpstreamPool::connect(Target target,
                                                                   Cancellation* cancellation) {
  if (shut_down_) co_return fail(Errc::ShuttingDown, "the router is shutting down");
  tcp::resolver resolver(io_);
  tcp::socket socket(io_);
  bool timed_out = false;
  const auto stop = [&resolver, &socket] {
    boost::system::error_code ignored;
    resolver.cancel();
    socket.close(ignored);
  };
  net::Deadline deadline(deadlines_, [&timed_out, &stop] {
    timed_out = true;
    stop();
  });
  deadline.arm(options_.connect_timeout);
  std::optional<Cancellation::Listener> listener;
  if (cancellation) listener.emplace(*cancellation, stop);

  const auto problem = [&](const boost::system::error_code& error) {
    if (cancellation && cancellation->requested()) return cancellation->reason();
    const std::string why =
        timed_out ? fmt::format("no connection within {} ms", options_.connect_timeout.count())
                  : error.message();
    Error unreachable(Errc::EngineUnreachable, fmt::format("worker {} cannot be reached: {}",
                                                           target.endpoint.to_string(), why));
    // The host is there, and nobody listens or the listener is being closed: worth knowing to who
    // watches workers come and go.
    if (!timed_out && error == asio::error::connection_refused)
      unreachable.with_cause(std::errc::connection_refused);
    if (!timed_out && error == asio::error::connection_reset)
      unreachable.with_cause(std::errc::connection_reset);
    return unreachable;
  };

  boost::system::error_code error;
  const auto address = asio::ip::make_address(target.endpoint.host, error);
  if (!error) {
    const auto [failed] =
        co_await socket.async_connect(tcp::endpoint(address, target.endpoint.port), net::kAwait);
    error = failed;
  } else {
    const auto [unresolved, endpoints] = co_await resolver.async_resolve(
        target.endpoint.host, std::to_string(target.endpoint.port), net::kAwait);
    error = unresolved;
    if (!error && !timed_out) {
      const auto [failed, endpoint] = co_await asio::async_connect(socket, endpoints, net::kAwait);
      error = failed;
    }
  }
  if (error || timed_out || (cancellation && cancellation->requested())) {
    co_return fail(problem(error));
  }
  co_return std::make_unique<Upstream>(std::move(socket), deadlines_, options_.header_bytes);
}

}  // namespace baton::engine
