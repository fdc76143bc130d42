// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "tools/sim/connection.h"
#include "tools/sim/engine_core.h"
#include "tools/sim/fault_table.h"
#include "tools/sim/generation.h"
#include "tools/sim/options.h"
#include "tools/sim/request_log.h"
#include "tools/sim/token_source.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <zmq.hpp>

namespace baton::sim {

// Role. One simulated engine server: its listeners, its connections, its routes, its faults.
// Confinement. The thread that runs the io_context.
// Lifetime. Owned by the command or a test; the io_context outlives it and is run until it has
//   nothing left after `stop`, because connections refer to the server.
// Invariants. The control door is open whatever faults are on.
class Server {
 public:
  Server(boost::asio::io_context& io, Options options,
         std::unique_ptr<const TokenSource> tokens = std::make_unique<WordTokens>());

  // Opens every listener and starts serving.
  Result<void> start();
  void stop();

  std::uint16_t port() const { return options_.port; }
  std::uint16_t bootstrap_port() const { return options_.bootstrap_port; }
  std::uint16_t control_port() const { return options_.control_port; }
  const Options& options() const { return options_; }

 private:
  // Which routes a listener offers, and whether faults touch it.
  enum class Door { Engine, Bootstrap, Control };
  using Acceptor = boost::asio::ip::tcp::acceptor;

  bool has_bootstrap() const;
  Result<void> check_options() const;
  // Opens the sockets that tell of KV blocks and gives them to the ranks.
  Result<void> open_feeds();
  std::string filled_topic() const;
  boost::asio::awaitable<void> serve_feeds();
  void give_up_transfer(const Connection& connection);
  Result<void> open_doors();
  Result<void> open(Acceptor& acceptor, std::uint16_t& port);
  boost::asio::awaitable<void> accept(Acceptor& acceptor, Door door);
  boost::asio::awaitable<void> serve(boost::asio::ip::tcp::socket socket, Door door);
  boost::asio::awaitable<bool> stays_open(Connection& connection, Door door);
  boost::asio::awaitable<void> answer(Connection& connection, const HttpRequest& request,
                                      Door door);
  boost::asio::awaitable<bool> answer_bootstrap(Connection& connection, const HttpRequest& request);
  boost::asio::awaitable<void> answer_health(Connection& connection, const HttpRequest& request);
  boost::asio::awaitable<bool> healthy(const HttpRequest& request);
  boost::asio::awaitable<bool> answer_engine(Connection& connection, const HttpRequest& request);
  boost::asio::awaitable<bool> answer_sglang(Connection& connection, const HttpRequest& request);
  boost::asio::awaitable<void> answer_abort(Connection& connection, const HttpRequest& request);
  boost::asio::awaitable<bool> answer_cache(Connection& connection, const HttpRequest& request);
  boost::asio::awaitable<bool> answer_tokens(Connection& connection, const HttpRequest& request);
  boost::asio::awaitable<bool> answer_simulator(Connection& connection, const HttpRequest& request);
  boost::asio::awaitable<void> answer_faults(Connection& connection, const HttpRequest& request);
  boost::asio::awaitable<void> answer_fetch(Connection& connection, const HttpRequest& request);
  boost::asio::awaitable<void> answer_release(Connection& connection, const HttpRequest& request);
  boost::asio::awaitable<void> refuse_while_told();
  // Returns when the doors that a fault had shut are open, or a new one keeps them shut.
  boost::asio::awaitable<void> until_listening();
  bool close_if_told(const Connection& asking);

  boost::asio::io_context& io_;
  Options options_;
  std::unique_ptr<const TokenSource> tokens_;
  FaultTable faults_;
  zmq::context_t zmq_;
  EngineCore engine_;
  RequestLog log_;
  RequestNames names_;
  std::optional<GenerationServices> services_;
  Acceptor engine_door_;
  Acceptor bootstrap_door_;
  Acceptor control_door_;
  std::unordered_set<Connection*> connections_;  // not those of the control door
  std::unordered_set<Connection*> control_connections_;
  std::unordered_map<const Connection*, Transfer> transfers_;  // that peers have under way
  bool refusing_ = false;
  bool stopping_ = false;
};

}  // namespace baton::sim
