// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/process_end.h"

#include "core/cancellation.h"
#include "net/deadlines.h"
#include "net/pause.h"

#include <array>
#include <chrono>
#include <system_error>

namespace baton::handoff {
namespace {

// A host whose process has ended refuses at once; one that says nothing is another matter.
constexpr std::chrono::milliseconds kRefusesWithin{250};
// Delay of a request whose worker only closed a connection.
constexpr std::chrono::milliseconds kClosesWithin{100};
// A process that ends closes its listener last: connections made meanwhile are closed with it.
constexpr std::chrono::milliseconds kEndsWithin{250};
constexpr std::chrono::milliseconds kBetweenConnections{5};

// A kept connection that breaks sooner was dead before anything was sent on it.
constexpr std::chrono::milliseconds kWasAlive{10};

}  // namespace

boost::asio::awaitable<bool> process_ended(http_client::UpstreamPool& pool,
                                           const fleet::Worker& worker, const Error& error,
                                           const http_client::Exchange& exchange) {
  // A kept connection broke, and the fresh one was refused, or met a listener that was closing.
  if (error.code() == Errc::EngineUnreachable) {
    if (exchange.replayed_after() < kWasAlive) co_return false;
    if (error.cause() == std::errc::connection_refused) co_return true;
  }
  if (error.cause() != std::errc::connection_reset) co_return false;
  const auto until = std::chrono::steady_clock::now() + kEndsWithin;
  while (std::chrono::steady_clock::now() < until) {
    Cancellation enough;
    net::Deadline deadline(pool.deadlines(), [&enough] {
      enough.request(Error(Errc::EngineTimeout, "the worker neither took nor refused it"));
    });
    deadline.arm(kRefusesWithin);
    const http_client::Target target{worker.id(), worker.spec().endpoint};
    const auto again = co_await pool.connect(target, &enough);
    if (again) {
      std::array<char, 1> byte;
      const net::IoResult heard = co_await (*again)->connection.read_some(byte, kClosesWithin);
      if (heard.status != net::IoStatus::Closed && heard.status != net::IoStatus::Failed)
        co_return false;
    } else if (again.error().cause() != std::errc::connection_reset) {
      // The closing listener may also reset a connection before the kernel has reported it
      // connected.
      co_return again.error().cause() == std::errc::connection_refused;
    }
    co_await net::pause(kBetweenConnections);
  }
  co_return false;
}

}  // namespace baton::handoff
