// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/health_watch.h"

#include "engine/request_head.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace baton::app {
namespace {

using boost::asio::awaitable;

constexpr std::chrono::milliseconds kInterval{500};
constexpr std::size_t kMostAsked = 64;  // at once
constexpr std::size_t kLargestAnswer = 64 * 1024;
// SGLang answers its health check by generating a token.
constexpr engine::ExchangeTimeouts kPatience{.first_byte = std::chrono::seconds(20),
                                             .idle = std::chrono::seconds(5)};
constexpr int kServerError = 500;

}  // namespace

HealthWatch::HealthWatch(boost::asio::io_context& io, net::Deadlines& deadlines,
                         net::TaskGroup& tasks, fleet::Fleet& fleet, engine::PoolOptions options)
    : tasks_(tasks), fleet_(fleet), pool_(io, deadlines, options), timer_(io) {}

void HealthWatch::start() { tasks_.spawn(watch()); }

void HealthWatch::stop() {
  stopped_ = true;
  timer_.cancel();
  pool_.shut_down();
}

awaitable<void> HealthWatch::watch() {
  while (!stopped_) {
    ask_the_silent();
    timer_.expires_after(kInterval);
    co_await timer_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }
}

void HealthWatch::ask_the_silent() {
  std::vector<std::shared_ptr<fleet::Worker>> silent;
  for (const fleet::Fleet::Member& one : fleet_.members()) {
    const bool known = one.worker->condition() == fleet::Condition::Up;
    if (!known && !asked_.contains(one.worker->id().value)) silent.push_back(one.worker);
  }
  // In turn: those that never answer must not keep the others waiting.
  for (std::size_t i = 0; i < silent.size() && asked_.size() < kMostAsked; ++i) {
    const auto& worker = silent[turn_++ % silent.size()];
    if (asked_.insert(worker->id().value).second) tasks_.spawn(ask(worker));
  }
}

awaitable<void> HealthWatch::ask(std::shared_ptr<fleet::Worker> worker) {
  {
    engine::Exchange exchange(pool_, {worker->id(), worker->spec().endpoint}, kPatience);
    const std::string head =
        engine::request_head("GET", "/health", worker->authority(), wire::Headers(), 0);
    const std::vector<std::string_view> no_body;
    const auto sent = co_await exchange.send(head, no_body);
    // Any answer but an engine's own "not yet" is that of somebody who is there.
    const bool there = sent && exchange.head().status < kServerError;
    if (sent) co_await exchange.read_all(kLargestAnswer);
    if (!stopped_) {
      if (there) {
        worker->answered();
      } else {
        worker->unreachable("it does not answer");
      }
    }
  }
  asked_.erase(worker->id().value);
}

}  // namespace baton::app
