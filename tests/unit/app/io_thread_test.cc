// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/io_thread.h"

#include "unit/app/router_fixture.h"

#include <boost/asio/ip/tcp.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace baton::app {
namespace {

using boost::asio::ip::tcp;
using testing::HasSubstr;
using testing::StartsWith;

struct IoThreadTest : testing::Test {
  IoThreadTest() {
    config::Config config;
    config.cpu_threads = 1;
    services = std::make_unique<Services>(config, log, [] {});
    thread = std::make_unique<IoThread>(*services);
  }
  ~IoThreadTest() override {
    thread->drop_everything();
    thread->join();
    services->cpu.join();
  }
  // So many listeners; the port of the first.
  std::uint16_t start(std::size_t count = 1) {
    std::vector<tcp::acceptor> acceptors;
    for (std::size_t i = 0; i < count; ++i) {
      acceptors.emplace_back(thread->io(),
                             tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
      ports.push_back(acceptors.back().local_endpoint().port());
    }
    thread->start(std::move(acceptors));
    return ports.empty() ? std::uint16_t{0} : ports.front();
  }
  // Until this thread has done all that was asked of it before.
  bool quiet() const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (thread->tasks() > 0 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    return thread->tasks() == 0;
  }

  std::string logged;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Debug, logged};
  std::unique_ptr<Services> services;
  std::unique_ptr<IoThread> thread;
  std::vector<std::uint16_t> ports;
};

TEST_F(IoThreadTest, ServesEachOfItsListeners) {
  start(3);
  for (const std::uint16_t port : ports) {
    EXPECT_THAT(get(port, "/health"), StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(get(port, "/v1/models"), HasSubstr("\"data\":[]"));
    EXPECT_THAT(get(port, "/nowhere"), StartsWith("HTTP/1.1 404"));
  }
}

TEST_F(IoThreadTest, MayServeNobody) {
  start(0);
  EXPECT_TRUE(quiet());
}

TEST_F(IoThreadTest, ThatFinishesTakesNoMoreConnections) {
  const std::uint16_t port = start();
  Connection idle(port);
  idle.send("GET /health HTTP/1.1\r\nHost: h\r\n\r\n");  // kept alive
  EXPECT_THAT(idle.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  thread->finish();
  EXPECT_TRUE(quiet());
  idle.read_all();  // returns, for the connection is closed
  EXPECT_EQ(get(port, "/health"), "");
}

TEST_F(IoThreadTest, DropsConnectionsThatSendNothing) {
  const std::uint16_t port = start();
  Connection silent(port);
  Connection half(port);
  half.send("POST /v1/completions HTTP/1.1\r\nContent-Length: 100\r\n\r\n{");
  // Answered later than both were accepted.
  EXPECT_THAT(get(port, "/health"), StartsWith("HTTP/1.1 200"));
  thread->drop_everything();
  silent.read_all();
  half.read_all();
  thread->finish();
  EXPECT_TRUE(quiet());
  EXPECT_EQ(services->client_connections.load(), 0U);
}

TEST_F(IoThreadTest, KeepsNoStateOfAWorkerThatItNeverKnew) {
  const std::uint16_t port = start();
  thread->forget({.value = 77});
  EXPECT_THAT(get(port, "/health"), StartsWith("HTTP/1.1 200"));
}

}  // namespace
}  // namespace baton::app
