// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/health_request.h"

#include "net/await.h"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

namespace baton::sim {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

}  // namespace

HealthRequest::HealthRequest(EngineCore& engine)
    : engine_(engine), rank_(engine.least_loaded()), before_(generated()) {
  sequence_ = rank_.submit({.prompt = {0}}, *this);
}

HealthRequest::~HealthRequest() {
  if (sequence_) rank_.abort(*sequence_);
}

asio::awaitable<bool> HealthRequest::seen(double poll_ms) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  const auto poll = std::chrono::microseconds(static_cast<std::int64_t>(poll_ms * 1000));
  const auto deadline = Clock::now() + kTimeout;
  while (Clock::now() < deadline) {
    timer.expires_after(poll);
    const auto [cancelled] = co_await timer.async_wait(net::kAwait);
    if (cancelled) break;
    if (generated() > before_) co_return true;
  }
  co_return false;
}

void HealthRequest::on_token(TokenProduced&) {
  ++rank_.tokens.generated;
  sequence_.reset();
}

std::uint64_t HealthRequest::generated() const {
  std::uint64_t total = 0;
  for (const auto& rank : engine_.ranks()) total += rank->tokens.generated;
  return total;
}

}  // namespace baton::sim
