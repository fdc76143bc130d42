// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/server.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace baton::sim {

struct Reply {
  int status = 0;  // 0: the connection ended before a whole answer
  std::string body;
  nlohmann::json json() const { return nlohmann::json::parse(body, nullptr, false); }
};

// Role. Simulated servers and their clients on one io_context, on free ports of the loopback.
// Invariants. `run` returns when the scenario has ended and every server has let go of everything.
class Loopback : public testing::Test {
 protected:
  using Task = boost::asio::awaitable<void>;
  using HeaderList = std::vector<std::pair<std::string, std::string>>;

  static Options worker(model::Engine engine, model::Role role = model::Role::Aggregated);
  Server& start(Options options,
                std::unique_ptr<const TokenSource> tokens = std::make_unique<WordTokens>());
  void run(std::function<Task()> scenario);

  boost::asio::awaitable<Reply> call(std::uint16_t port, std::string method, std::string path,
                                     nlohmann::json body = nullptr, HeaderList headers = {});
  boost::asio::awaitable<Reply> chat(const Server& server, nlohmann::json fields,
                                     HeaderList headers = {});
  // A chat request whose answer nobody reads yet.
  boost::asio::awaitable<boost::asio::ip::tcp::socket> open_chat(const Server& server,
                                                                 nlohmann::json fields,
                                                                 HeaderList headers = {});
  boost::asio::awaitable<nlohmann::json> state(const Server& server);
  // Asks for the state until `expected` holds; fails the test when it never does.
  Task until(const Server& server, std::function<bool(const nlohmann::json&)> expected);

  static std::string expected_text(std::size_t words = 1000);
  static std::string text_of(const Reply& reply);

  boost::asio::io_context io_;
  std::vector<std::unique_ptr<Server>> servers_;
};

}  // namespace baton::sim
