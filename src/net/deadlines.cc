// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "net/deadlines.h"

#include <algorithm>
#include <utility>

namespace baton::net {

Deadline::Deadline(Deadlines& deadlines, std::function<void()> on_expiry)
    : deadlines_(deadlines), on_expiry_(std::move(on_expiry)) {}

void Deadline::arm(std::chrono::milliseconds from_now) {
  // now_ may be that old; so much more keeps the deadline from firing early.
  expiry_ = deadlines_.now_ + from_now + Deadlines::kSlack;
  if (!is_linked()) deadlines_.armed_.push_back(*this);
}

void Deadline::hasten(std::chrono::milliseconds from_now) {
  if (expiry_ == kNever) return;
  expiry_ = std::min(expiry_, deadlines_.now_ + from_now + Deadlines::kSlack);
}

Deadlines::Deadlines(boost::asio::io_context& io) : timer_(io), now_(Deadline::Clock::now()) {
  tick();
}

void Deadlines::stop() {
  // A tick that is already on its way cannot be cancelled; it must not arm the timer again.
  stopped_ = true;
  timer_.cancel();
}

void Deadlines::tick() {
  const auto last = std::exchange(now_, Deadline::Clock::now());
  if (const auto still = now_ - last - kSlack; still > still.zero()) {
    stood_still_ += still;
    for (Deadline& deadline : armed_) {
      if (deadline.expiry_ != Deadline::kNever) deadline.expiry_ += still;
    }
  }
  // A callback may destroy any deadline, its own too. So the expired ones are moved to a list of
  // their own first. Those that were disarmed are let go: thousands of idle connections have one.
  decltype(armed_) expired;
  for (auto it = armed_.begin(); it != armed_.end();) {
    Deadline& deadline = *it++;
    if (deadline.expiry_ == Deadline::kNever) {
      deadline.unlink();
    } else if (deadline.expiry_ <= now_) {
      deadline.unlink();
      expired.push_back(deadline);
    }
  }
  while (!expired.empty()) {
    Deadline& deadline = expired.front();
    expired.pop_front();
    if (deadline.expiry_ > now_) {  // re-armed or disarmed by another's callback
      armed_.push_back(deadline);
      continue;
    }
    deadline.disarm();
    // The callback may destroy the deadline and with it the function that runs.
    const auto on_expiry = deadline.on_expiry_;
    on_expiry();
  }
  if (stopped_) return;
  timer_.expires_after(kTick);
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error) tick();
  });
}

}  // namespace baton::net
