// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "app/router.h"
#include "support/fake_engine.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace baton::app {

// A blocking connection that never waits for ever.
class Connection {
 public:
  explicit Connection(std::uint16_t port) : socket_(io_) {
    boost::system::error_code error;
    socket_.connect({boost::asio::ip::address_v4::loopback(), port}, error);
    connected_ = !error;
    const timeval timeout{10, 0};
    ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  }
  bool connected() const { return connected_; }
  void send(std::string_view text) {
    boost::system::error_code ignored;
    boost::asio::write(socket_, boost::asio::buffer(text), ignored);
  }
  // All that comes until this text has come, or until the other side closes.
  const std::string& read_until(std::string_view text) {
    std::array<char, 4096> buffer{};
    while (received_.find(text) == received_.npos) {
      const ssize_t size = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), 0);
      if (size <= 0) break;
      received_.append(buffer.data(), static_cast<std::size_t>(size));
    }
    return received_;
  }
  std::string read_all() { return read_until(std::string_view("\0never\0", 7)); }

 private:
  boost::asio::io_context io_;
  boost::asio::ip::tcp::socket socket_;
  std::string received_;
  bool connected_ = false;
};

inline std::string get(std::uint16_t port, std::string_view path) {
  Connection connection(port);
  connection.send(
      fmt::format("GET {} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", path));
  return connection.read_all();
}

inline constexpr std::string_view kBody = R"({"model":"demo","prompt":"hi","max_tokens":1})";

inline std::string post_text(std::string_view body = kBody) {
  return fmt::format(
      "POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
      "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
      body.size(), body);
}

inline std::string post(std::uint16_t port) {
  Connection connection(port);
  connection.send(post_text());
  return connection.read_all();
}

// An engine that answers requests with this text, and everything else as an engine that is well.
inline test::FakeEngine::Script serving(const std::string& text) {
  return test::by_path(
      {{"/health", test::response(200, "")},
       {"/v1/models", test::response(200, R"({"data":[{"id":"demo"}]})")},
       {"/v1/completions",
        test::response(200,
                       fmt::format(R"({{"id":"x","choices":[{{"index":0,"text":"{}",)"
                                   R"("finish_reason":"stop"}}]}})",
                                   text),
                       "Content-Type: application/json\r\n")}});
}

// Role. A router that runs on a thread of its own, until a signal or the end of the test.
struct RouterTest : testing::Test {
  ~RouterTest() override { end(); }

  static config::Config config_with(const std::vector<model::Endpoint>& workers) {
    config::Config config;
    config.listen = {"127.0.0.1", 0};
    config.admin = model::Endpoint{"127.0.0.1", 0};
    config.threads = 2;
    config.cpu_threads = 1;
    config.probe.enabled = false;
    config.shutdown_grace = std::chrono::seconds(5);
    config::Model& demo = config.models.emplace_back();
    demo.name = "demo";
    for (const model::Endpoint& endpoint : workers) {
      model::WorkerSpec spec;
      spec.endpoint = endpoint;
      demo.workers.push_back(spec);
    }
    return config;
  }
  Result<void> make(config::Config config, Router::Origin origin = {},
                    Router::Succession succession = {}) {
    router =
        std::make_unique<Router>(std::move(config), std::move(origin), std::move(succession), log);
    return router->start();
  }
  void run() {
    control = std::thread([this] { router->run(); });
  }
  void serve(config::Config config, Router::Origin origin = {},
             Router::Succession succession = {}) {
    const auto started = make(std::move(config), std::move(origin), std::move(succession));
    ASSERT_TRUE(started) << started.error().message();
    run();
  }
  // As an operator does; it has ended when this returns.
  void end() {
    if (control.joinable()) {
      ::kill(::getpid(), SIGTERM);
      control.join();
    }
    router.reset();
  }
  std::uint16_t port() const { return router->address().port; }
  std::uint16_t admin() const { return router->admin_address()->port; }
  // Asks again and again; each answer is waited for.
  std::string get_until(std::uint16_t where, std::string_view path, std::string_view wanted) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    std::string answer;
    do answer = get(where, path);
    while (answer.find(wanted) == answer.npos && std::chrono::steady_clock::now() < end);
    return answer;
  }
  void wait_until_ready() const {
    EXPECT_THAT(get_until(admin(), "/ready", "HTTP/1.1 200"), testing::StartsWith("HTTP/1.1 200"));
  }

  std::string logged;  // read it after end()
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, logged};
  std::unique_ptr<Router> router;
  std::thread control;
};

}  // namespace baton::app
