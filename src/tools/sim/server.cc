// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/server.h"

#include "net/await.h"
#include "tools/sim/task.h"

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include <utility>

namespace baton::sim {
namespace {

namespace asio = boost::asio;
using model::Engine;

constexpr int kBacklog = 16384;
constexpr auto kRefusalTick = std::chrono::milliseconds(5);

// All three run behind uvicorn. vLLM's and SGLang's answers name what they depend on, and SGLang
// lets every page have them.
std::string usual_headers(model::Engine engine, std::string_view origin) {
  std::string lines = "server: uvicorn\r\n";
  if (engine == model::Engine::Trtllm) return lines;
  lines += "vary: Origin\r\n";
  if (engine == model::Engine::Sglang && !origin.empty()) {
    lines += fmt::format(
        "access-control-allow-origin: {}\r\naccess-control-allow-credentials: true\r\n", origin);
  }
  return lines;
}

}  // namespace

Server::Server(asio::io_context& io, Options options, std::unique_ptr<const TokenSource> tokens)
    : io_(io),
      options_(std::move(options)),
      tokens_(std::move(tokens)),
      engine_(options_, faults_),
      engine_door_(io),
      bootstrap_door_(io),
      control_door_(io) {}

Result<void> Server::check_options() const {
  if (model::engine_of(options_.mode()) != options_.engine) {
    return fail(Errc::InvalidRequest,
                fmt::format("--handoff {}: not a hand-off of {}", model::to_string(options_.mode()),
                            model::to_string(options_.engine)));
  }
  if (!options_.loras.empty() && options_.engine == Engine::Trtllm)
    return fail(Errc::InvalidRequest, "--lora: TensorRT-LLM has no adapters by name");
  if (!options_.version.empty() && !model::parse_version(options_.version))
    return fail(Errc::InvalidRequest, fmt::format("--release {}: not a version", options_.version));
  if (options_.kv.host_hashes_only && options_.engine != Engine::Vllm)
    return fail(Errc::InvalidRequest, "--kv-host-events hashes: only vLLM leaves the tokens out");
  if (!options_.kv.replay.empty() && options_.kv.events.empty())
    return fail(Errc::InvalidRequest, "--kv-replay: needs --kv-events");
  if (options_.kv.host_blocks > 0 && options_.engine == Engine::Trtllm)
    return fail(Errc::InvalidRequest, "--host-blocks: not simulated for TensorRT-LLM");
  return {};
}

Result<void> Server::start() {
  if (auto sound = check_options(); !sound) return sound;
  if (auto opened = open_doors(); !opened) return opened;
  if (auto opened = open_feeds(); !opened) return opened;
  services_.emplace(options_, model::Endpoint{options_.host, options_.port}, *tokens_, engine_,
                    faults_, log_, names_);
  const auto executor = io_.get_executor();
  if (has_bootstrap()) spawn(executor, accept(bootstrap_door_, Door::Bootstrap));
  if (options_.has_control) {
    if (auto opened = open(control_door_, options_.control_port); !opened) return opened;
    spawn(executor, accept(control_door_, Door::Control));
  }
  spawn(executor, accept(engine_door_, Door::Engine));
  for (const auto& rank : engine_.ranks()) spawn(executor, rank->run_steps());
  spawn(executor, engine_.run_leases());
  if (!options_.kv.events.empty()) spawn(executor, serve_feeds());
  return {};
}

void Server::stop() {
  stopping_ = true;
  boost::system::error_code ignored;
  for (Acceptor* door : {&engine_door_, &bootstrap_door_, &control_door_}) door->close(ignored);
  for (Connection* connection : connections_) connection->reset();
  for (Connection* connection : control_connections_) connection->reset();
  engine_.stop();
}

bool Server::has_bootstrap() const {
  const model::HandoffMode mode = options_.mode();
  return options_.role == model::Role::Prefill &&
         (mode == model::HandoffMode::Bootstrap || mode == model::HandoffMode::Mooncake);
}

// Those that faults shut: all of them or none.
Result<void> Server::open_doors() {
  if (auto opened = open(engine_door_, options_.port); !opened) return opened;
  if (!has_bootstrap()) return {};
  auto opened = open(bootstrap_door_, options_.bootstrap_port);
  boost::system::error_code ignored;
  if (!opened) engine_door_.close(ignored);
  return opened;
}

Result<void> Server::open(Acceptor& acceptor, std::uint16_t& port) {
  boost::system::error_code error;
  const auto address = asio::ip::make_address(
      options_.host == "localhost" ? std::string("127.0.0.1") : options_.host, error);
  if (error) {
    return fail(Errc::InvalidRequest, fmt::format("--host {}: not an address", options_.host));
  }
  const asio::ip::tcp::endpoint endpoint(address, port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(kBacklog, error);
  if (error) {
    boost::system::error_code ignored;
    acceptor.close(ignored);
    const std::string_view hint =
        error == asio::error::address_in_use
            ? "; another process has it: choose another port, or 0 for a free one"
            : "";
    return fail(Errc::Internal, fmt::format("cannot listen on {}:{}: {}{}", options_.host, port,
                                            error.message(), hint));
  }
  port = acceptor.local_endpoint().port();
  return {};
}

asio::awaitable<void> Server::accept(Acceptor& acceptor, Door door) {
  while (acceptor.is_open()) {
    auto [error, socket] = co_await acceptor.async_accept(net::kAwait);
    if (!error) {
      spawn(io_.get_executor(), serve(std::move(socket), door));
      continue;
    }
    if (!acceptor.is_open()) co_return;
    // Out of descriptors, most likely: wait for some to be given back.
    asio::steady_timer timer(io_, std::chrono::milliseconds(10));
    co_await timer.async_wait(net::kAwait);
  }
}

asio::awaitable<void> Server::serve(asio::ip::tcp::socket socket, Door door) {
  Connection connection(std::move(socket));
  auto& open = door == Door::Control ? control_connections_ : connections_;
  struct Registration {
    Server& server;
    std::unordered_set<Connection*>& set;
    Connection* connection;
    ~Registration() {
      set.erase(connection);
      server.give_up_transfer(*connection);
    }
  } registration{*this, open, &connection};
  open.insert(&connection);
  // A connection accepted in the moment the door closed.
  if (stopping_ || (refusing_ && door != Door::Control)) {
    connection.reset();
    co_return;
  }
  while (auto request = co_await connection.read_request()) {
    connection.set_headers(usual_headers(options_.engine, request->header("origin")));
    co_await answer(connection, *request, door);
    if (!connection.keep_alive() || !co_await stays_open(connection, door)) break;
  }
}

// Like uvicorn. A peer that fetches blocks is silent while they move.
asio::awaitable<bool> Server::stays_open(Connection& connection, Door door) {
  if (options_.keep_alive_ms == 0 || door == Door::Control || transfers_.contains(&connection))
    co_return true;
  co_return co_await connection.heard_within(from_ms(options_.keep_alive_ms));
}

void Server::give_up_transfer(const Connection& connection) {
  if (const auto entry = transfers_.extract(&connection)) engine_.give_up(entry.mapped());
}

// The listeners follow the `refuse` fault: closed and every connection reset while it is on.
bool Server::close_if_told(const Connection& asking) {
  if (refusing_ || !faults_.refusing(std::chrono::steady_clock::now())) return false;
  refusing_ = true;
  boost::system::error_code ignored;
  engine_door_.close(ignored);
  bootstrap_door_.close(ignored);
  for (Connection* connection : connections_) {
    if (connection != &asking) connection->reset();
  }
  spawn(io_.get_executor(), refuse_while_told());
  return true;
}

asio::awaitable<void> Server::refuse_while_told() {
  asio::steady_timer timer(io_);
  // Another process may hold a port for a moment; the doors open as soon as it is free again.
  while (!stopping_ && (faults_.refusing(std::chrono::steady_clock::now()) || !open_doors())) {
    timer.expires_after(kRefusalTick);
    co_await timer.async_wait(net::kAwait);
  }
  if (stopping_) co_return;
  refusing_ = false;
  spawn(io_.get_executor(), accept(engine_door_, Door::Engine));
  if (has_bootstrap()) spawn(io_.get_executor(), accept(bootstrap_door_, Door::Bootstrap));
}

asio::awaitable<void> Server::until_listening() {
  asio::steady_timer timer(io_);
  while (refusing_ && !stopping_ && !faults_.refusing(std::chrono::steady_clock::now())) {
    timer.expires_after(kRefusalTick);
    co_await timer.async_wait(net::kAwait);
  }
}

}  // namespace baton::sim
