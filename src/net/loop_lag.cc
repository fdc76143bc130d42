// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "net/loop_lag.h"

namespace baton::net {
namespace {

constexpr std::chrono::milliseconds kPeriod{100};

}  // namespace

void LoopLag::start() {
  timer_.expires_after(kPeriod);
  wait();
}

void LoopLag::stop() {
  stopped_ = true;
  timer_.cancel();
}

void LoopLag::wait() {
  timer_.async_wait([this](boost::system::error_code error) {
    if (error || stopped_) return;
    const auto now = std::chrono::steady_clock::now();
    report_(now - timer_.expiry());
    timer_.expires_at(now + kPeriod);
    wait();
  });
}

}  // namespace baton::net
