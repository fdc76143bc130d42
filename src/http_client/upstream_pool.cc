// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http_client/upstream_pool.h"

#include "net/await.h"

#include <boost/asio/ip/tcp.hpp>
#include <fmt/format.h>

#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace baton::http_client {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
constexpr std::chrono::seconds kSweepEvery{5};

Resolver resolver_of(asio::io_context& io, const PoolOptions& options) {
  return options.lookup ? Resolver(options.lookup) : Resolver(io);
}

}  // namespace

UpstreamPool::UpstreamPool(asio::io_context& io, net::Deadlines& deadlines, PoolOptions options)
    : io_(io),
      deadlines_(deadlines),
      sweep_(deadlines, [this] { sweep(); }),
      options_(options),
      resolver_(resolver_of(io, options)) {
  sweep_.arm(kSweepEvery);
}

// Workers close long idle connections; half-closed connections would waste descriptors.
void UpstreamPool::sweep() {
  for (auto& [worker, idle] : idle_) {
    std::erase_if(idle, [](const auto& upstream) { return upstream->connection.stale(); });
  }
  // Those of other threads cannot make room when a request needs it.
  if (options_.descriptors && options_.descriptors->short_lately()) idle_.clear();
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

bool UpstreamPool::drop_idle() {
  for (auto it = idle_.begin(); it != idle_.end(); it = idle_.erase(it)) {
    auto& idle = it->second;
    if (idle.empty()) continue;
    idle.erase(idle.begin());
    return true;
  }
  return false;
}

error_code UpstreamPool::open(tcp::socket& socket, const tcp& protocol) {
  while (true) {
    error_code error;
    socket.open(protocol, error);
    if (!error && (!options_.descriptors ||
                   options_.descriptors->allows(options_.use, socket.native_handle())))
      return error;
    if (error && !net::is_local_fault(error)) return error;
    error_code ignored;
    socket.close(ignored);
    if (!drop_idle()) return error ? error : error_code(asio::error::no_descriptors);
  }
}

void UpstreamPool::shut_down() {
  shut_down_ = true;
  idle_.clear();
  for (auto it = holders_.begin(); it != holders_.end();) (it++)->drop();
}

awaitable<Result<std::unique_ptr<Upstream>>> UpstreamPool::connect(Target target,
                                                                   Cancellation* cancellation) {
  if (shut_down_) co_return fail(Errc::ShuttingDown, "the router is shutting down");
  Resolver::Wait lookup(io_);
  tcp::socket socket(io_);
  bool timed_out = false;
  bool stopped = false;
  const auto stop = [&lookup, &socket, &stopped] {
    boost::system::error_code ignored;
    stopped = true;
    lookup.abandon();
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
    if (!timed_out && net::is_local_fault(error)) return out_of_resources(target.endpoint, error);
    const std::string why =
        timed_out ? fmt::format("no connection within {} ms", options_.connect_timeout.count())
                  : error.message();
    Error unreachable(Errc::EngineUnreachable, fmt::format("worker {} cannot be reached: {}",
                                                           target.endpoint.to_string(), why));
    // The host is there, but nothing listens on the port or the listener is being closed. Watchers
    // of workers need to know.
    if (!timed_out && error == asio::error::connection_refused)
      unreachable.with_cause(std::errc::connection_refused);
    if (!timed_out && error == asio::error::connection_reset)
      unreachable.with_cause(std::errc::connection_reset);
    return unreachable;
  };

  boost::system::error_code error;
  const auto address = asio::ip::make_address(target.endpoint.host, error);
  if (!error) {
    const tcp::endpoint endpoint(address, target.endpoint.port);
    error = open(socket, endpoint.protocol());
    if (!error) {
      const auto [failed] = co_await socket.async_connect(endpoint, net::kAwait);
      error = failed;
    }
  } else {
    error = co_await connect_by_name(socket, lookup, target.endpoint, stopped);
  }
  if (error || timed_out || (cancellation && cancellation->requested())) {
    co_return fail(problem(error));
  }
  co_return std::make_unique<Upstream>(std::move(socket), deadlines_, options_);
}

awaitable<error_code> UpstreamPool::connect_by_name(tcp::socket& socket, Resolver::Wait& lookup,
                                                    const model::Endpoint& endpoint,
                                                    const bool& stopped) {
  // A resolver without descriptors may say that there is no such name.
  error_code error = open(socket, tcp::v4());
  if (error && net::is_local_fault(error)) co_return error;
  const Resolver::Found found = co_await resolver_.resolve(endpoint.host, lookup);
  const bool short_of_them =
      socket.is_open() && !net::lowest_free_descriptor(socket.native_handle());
  if (found.error && short_of_them) co_return asio::error::no_descriptors;
  error = found.error;
  for (const asio::ip::address& address : found.addresses) {
    if (stopped) break;
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

Error UpstreamPool::out_of_resources(const model::Endpoint& endpoint, const error_code& error) {
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
