// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sidecar/registration.h"

#include "net/await.h"

#include <algorithm>
#include <utility>

namespace baton::sidecar {
namespace {

using boost::asio::awaitable;
using etcd::Reply;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kFirstPause{250};
constexpr milliseconds kLongestPause{2'000};

}  // namespace

Registration::Registration(boost::asio::io_context& io, etcd::Client& client, seconds ttl,
                           std::function<void()> on_registered, telemetry::Logger& log)
    : client_(client),
      ttl_(ttl),
      on_registered_(std::move(on_registered)),
      log_(log),
      timer_(io),
      random_(std::random_device()()),
      pause_(kFirstPause) {}

void Registration::want(Entry entry) {
  wanted_ = std::move(entry);
  timer_.cancel();
}

void Registration::want_nothing() {
  wanted_.reset();
  timer_.cancel();
}

void Registration::finish() {
  finishing_ = true;
  want_nothing();
}

bool Registration::settled() const {
  if (!wanted_) return !lease_;
  return lease_ && lease_->written == wanted_;
}

Registration::Step Registration::next_step(Clock::time_point now) const {
  // Another key gets another lease, so that the old one goes with its own.
  if (lease_ && (!wanted_ || wanted_->key != lease_->key)) return Step::Revoke;
  if (!wanted_) return Step::Rest;
  if (!lease_) return Step::Grant;
  if (lease_->written != wanted_) return Step::Put;
  return now >= lease_->due ? Step::KeepAlive : Step::Rest;
}

awaitable<void> Registration::run() {
  while (true) {
    const Step step = next_step(Clock::now());
    if (step == Step::Rest) {
      if (finishing_) co_return;
      co_await rest(lease_ ? lease_->due : Clock::time_point::max());
      continue;
    }
    const Reply<void> reply = co_await take(step);
    if (!reply && reply.error().reason == etcd::Reason::Stopped) co_return;
    note(reply);
    if (!reply) co_await rest(Clock::now() + back_off());
  }
}

awaitable<Reply<void>> Registration::take(Step step) {
  switch (step) {
    case Step::Grant:
      co_return co_await grant();
    case Step::Put:
      co_return co_await put();
    case Step::KeepAlive:
      co_return co_await keep_alive();
    case Step::Revoke:
      co_return co_await revoke();
    case Step::Rest:
      break;
  }
  co_return Reply<void>();
}

awaitable<Reply<void>> Registration::grant() {
  std::string key = wanted_->key;
  const auto granted = co_await client_.grant(ttl_);
  if (!granted) co_return etcd::fail(granted.error());
  lease_ = Lease{.id = granted->id,
                 .ttl = granted->ttl,
                 .key = std::move(key),
                 .written = {},
                 .due = {},
                 .over = {}};
  prolong(granted->ttl);
  co_return Reply<void>();
}

awaitable<Reply<void>> Registration::put() {
  Entry entry = *wanted_;
  const auto taken = co_await client_.put(entry.key, entry.value, lease_->id);
  if (!taken) {
    if (taken.error().reason == etcd::Reason::NotFound) lease_.reset();
    co_return etcd::fail(taken.error());
  }
  const bool first = !lease_->written;
  lease_->written = std::move(entry);
  if (first) {
    log_.info("registered", {{"key", lease_->key}, {"ttl_s", lease_->ttl.count()}});
    on_registered_();
  }
  co_return Reply<void>();
}

awaitable<Reply<void>> Registration::keep_alive() {
  const auto left = co_await client_.keep_alive(lease_->id);
  if (!left) co_return etcd::fail(left.error());
  if (left->count() > 0) {
    prolong(*left);
  } else {
    log_.warning("registration_lost", {{"key", lease_->key}});
    lease_.reset();
  }
  co_return Reply<void>();
}

awaitable<Reply<void>> Registration::revoke() {
  const auto revoked = co_await client_.revoke(lease_->id);
  // Past its end the lease has expired, whether etcd answers or not.
  if (!revoked && Clock::now() < lease_->over) co_return etcd::fail(revoked.error());
  log_.info("withdrawn", {{"key", lease_->key}});
  lease_.reset();
  co_return Reply<void>();
}

void Registration::prolong(seconds left) {
  const auto now = Clock::now();
  lease_->due = now + milliseconds(left) / 3;
  lease_->over = now + left;
}

void Registration::note(const Reply<void>& reply) {
  if (reply) {
    pause_ = kFirstPause;
    if (!stalled_) return;
    stalled_.reset();
    log_.info("registration_resumed", {});
    return;
  }
  if (stalled_ == reply.error().reason) return;
  stalled_ = reply.error().reason;
  log_.warning("registration_stalled", {{"error", reply.error().message}});
}

awaitable<void> Registration::rest(Clock::time_point until) {
  timer_.expires_at(until);
  co_await timer_.async_wait(net::kAwait);
}

milliseconds Registration::back_off() {
  // Not all sidecars of a fleet at the same moment.
  std::uniform_int_distribution<milliseconds::rep> spread(pause_.count() / 2, pause_.count());
  pause_ = std::min(2 * pause_, kLongestPause);
  return milliseconds(spread(random_));
}

}  // namespace baton::sidecar
