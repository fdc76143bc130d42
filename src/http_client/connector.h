// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/memory_budget.h"
#include "core/result.h"
#include "http_client/resolver.h"
#include "http_client/tls.h"
#include "model/worker.h"
#include "net/connection.h"
#include "net/deadlines.h"
#include "net/descriptor_budget.h"
#include "wire/http_parser.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace baton::http_client {

using boost::asio::awaitable;

// A server as seen by a connection. All connections under one id speak TLS, or none does.
struct Target {
  model::WorkerId id;
  const model::Endpoint& endpoint;
  TlsClient* tls = nullptr;  // null: plain
};

struct PoolOptions {
  std::chrono::milliseconds connect_timeout;  // name lookup and TLS handshake included
  std::size_t idle_per_worker;
  std::size_t header_bytes;
  net::DescriptorBudget* descriptors = nullptr;  // null: as many as there are
  net::DescriptorUse use = net::DescriptorUse::Control;
  MemoryBudget* memory = nullptr;  // of whole answers; null: they are not counted
  Resolver::Lookup lookup = {};    // of host names; empty: the system's
  bool probe_silence = false;      // TCP finds out that a silent connection leads nowhere
};

// The step of an exchange that failed.
enum class Phase : std::uint8_t { Resolve, Connect, Tls, Send, Head, Body };

// How an exchange failed, for callers with words of their own.
struct ExchangeFailure {
  Phase phase = Phase::Connect;
  net::IoStatus status = net::IoStatus::Failed;  // Closed, Timeout, Aborted or Failed
  std::string why;                               // of Failed
};

// One connection to a server with its reading state. The buffer is there only while an answer is
// read.
struct Upstream {
  Upstream(net::tcp::socket socket, net::Deadlines& deadlines, const PoolOptions& options,
           boost::asio::ssl::context* tls)
      : held(options.descriptors),
        connection(std::move(socket), deadlines, tls),
        parser(options.header_bytes) {}
  net::DescriptorBudget::Held held;
  net::Connection connection;
  wire::ResponseParser parser;
};

// Role. Makes connections to servers: looks the name up, connects to its addresses in turn, and
//   shakes hands where the target speaks TLS.
// Confinement. One I/O thread.
// Lifetime. Outlives its attempts, and the options outlive it.
// Invariants. An attempt ends within connect_timeout, or when it is cancelled. No connection is made
//   on a descriptor that the options' use may not have.
class Connector {
 public:
  // `make_room` closes a connection that only saves time; false: there is none.
  Connector(boost::asio::io_context& io, net::Deadlines& deadlines, const PoolOptions& options,
            std::function<bool()> make_room);

  // EngineUnreachable if it fails, with the cause connection_refused if nothing listens on the
  // port, or connection_reset if the listener is being closed; OutOfResources if this machine lacks
  // what a connection needs: the server was not asked. `failure`, if given, gets the details.
  awaitable<Result<std::unique_ptr<Upstream>>> connect(Target target, Cancellation* cancellation,
                                                       ExchangeFailure* failure = nullptr);
  // Every later attempt fails.
  void shut_down() { shut_down_ = true; }

 private:
  struct Attempt;

  // Opens a socket within the descriptor bound.
  boost::system::error_code open(boost::asio::ip::tcp::socket& socket,
                                 const boost::asio::ip::tcp& protocol);
  awaitable<boost::system::error_code> connect_by_name(Attempt& attempt,
                                                       const model::Endpoint& endpoint);
  Error explain(const Attempt& attempt, const Target& target,
                const boost::system::error_code& error, const std::string& why);
  Error out_of_resources(const model::Endpoint& endpoint, const boost::system::error_code& error);

  boost::asio::io_context& io_;
  net::Deadlines& deadlines_;
  const PoolOptions& options_;
  std::function<bool()> make_room_;
  Resolver resolver_;
  bool shut_down_ = false;
};

}  // namespace baton::http_client
