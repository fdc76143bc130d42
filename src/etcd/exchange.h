// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/error.h"
#include "etcd/failure.h"
#include "etcd/options.h"
#include "http_client/exchange.h"
#include "http_client/tls.h"
#include "http_client/upstream_pool.h"
#include "net/deadlines.h"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace baton::etcd {

using boost::asio::awaitable;

// Of the pool that exchanges need: it keeps no connection. Calls are rare, and a fresh connection
// cannot be dead.
http_client::PoolOptions pool_options();

// Role. One POST to one etcd server, over a connection of its own, and the answer piece by piece: an
//   http_client::Exchange under one deadline, whose failures are etcd's.
// Confinement. One I/O thread.
// Lifetime. Ends before its pool, scope and options do. Must not die while a coroutine of it is
//   suspended.
// Invariants. No wait outlasts the deadline or the scope. Every failure names the server.
class Exchange {
 public:
  Exchange(http_client::UpstreamPool& pool, const Options& options, const Server& server,
           Cancellation& scope);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Everything must end within `time` from now.
  void set_deadline(std::chrono::milliseconds time);

  // Connects, sends, and waits for the head of the answer. `token` empty: none.
  awaitable<Reply<void>> send(std::string_view path, std::string_view body, std::string_view token);
  int status() const { return exchange_->head().status; }
  // The next piece of the body, valid until the next call; empty at its end.
  awaitable<Reply<std::string_view>> read();
  // The whole body.
  awaitable<Reply<std::string>> read_all(std::size_t limit);

  // A failure that names the server.
  Failure failure(Reason reason, std::string_view what) const;

 private:
  void give_up(Failure why);
  Failure explain(const Error& error) const;

  http_client::UpstreamPool& pool_;
  const Options& options_;
  const Server& server_;
  std::unique_ptr<http_client::TlsClient> tls_;
  std::optional<http_client::Exchange> exchange_;  // while and after it is sent
  std::optional<Failure> given_up_;
  std::chrono::milliseconds time_{0};
  net::Deadline deadline_;
  Cancellation::Listener listener_;  // last: it may speak at once
};

}  // namespace baton::etcd
