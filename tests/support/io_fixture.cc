// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "support/io_fixture.h"

#include <boost/asio/co_spawn.hpp>

#include <exception>
#include <memory>

namespace baton::test {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kRunTimeout{10};
constexpr std::chrono::milliseconds kSlice{5};

}  // namespace

IoFixture::~IoFixture() {
  deadlines.stop();
  io.restart();
  io.run_for(kRunTimeout);
  EXPECT_EQ(started_, 0U) << "a coroutine has not ended";
}

void IoFixture::start(Body body) {
  ++started_;
  asio::co_spawn(io, std::move(body), [this](std::exception_ptr thrown) {
    --started_;
    EXPECT_FALSE(thrown) << "a coroutine ended by an exception";
  });
}

void IoFixture::run(Body body) {
  // Shared, because a coroutine that is late may still end when the fixture does.
  const auto ended = std::make_shared<bool>(false);
  asio::co_spawn(io, std::move(body), [ended](std::exception_ptr thrown) {
    *ended = true;
    EXPECT_FALSE(thrown) << "the coroutine ended by an exception";
  });
  run_until([ended] { return *ended; });
}

void IoFixture::run_until(const std::function<bool()>& condition) {
  const auto deadline = steady_clock::now() + kRunTimeout;
  while (!condition()) {
    if (steady_clock::now() > deadline) {
      ADD_FAILURE() << "what was waited for did not come";
      return;
    }
    io.restart();
    // In slices, because what is waited for may be done by another thread.
    io.run_one_for(kSlice);
  }
}

void IoFixture::run_for(std::chrono::milliseconds time) {
  io.restart();
  io.run_for(time);
}

std::pair<IoFixture::Socket, IoFixture::Socket> IoFixture::socket_pair() {
  tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  tcp::socket client(io);
  client.connect(acceptor.local_endpoint());
  tcp::socket server = acceptor.accept();
  return {std::move(client), std::move(server)};
}

}  // namespace baton::test
