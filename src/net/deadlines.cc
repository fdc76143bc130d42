// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "net/deadlines.h"

#include <utility>

namespace baton::net {

Deadline::Deadline(Deadlines& deadlines, std::function<void()> on_expiry)
    : deadlines_(deadlines), on_expiry_(std::move(on_expiry)) {
  deadlines_.all_.push_back(*this);
}

void Deadline::arm(std::chrono::milliseconds from_now) {
  // now_ may be a tick old; one tick more keeps the deadline from firing early.
  expiry_ = deadlines_.now_ + from_now + Deadlines::kTick;
}

Deadlines::Deadlines(boost::asio::io_context& io) : timer_(io), now_(Deadline::Clock::now()) {
  tick();
}

void Deadlines::stop() {
  // A tick that is due already cannot be cancelled any more; it must not start the next one.
  stopped_ = true;
  timer_.cancel();
}

void Deadlines::tick() {
  now_ = Deadline::Clock::now();
  // A callback may destroy any deadline, its own too. So the expired ones are moved to a list of
  // their own, and each goes back to the main list before its callback runs.
  decltype(all_) expired;
  for (auto it = all_.begin(); it != all_.end();) {
    Deadline& deadline = *it++;
    if (deadline.expiry_ > now_) continue;
    deadline.unlink();
    expired.push_back(deadline);
  }
  while (!expired.empty()) {
    Deadline& deadline = expired.front();
    expired.pop_front();
    all_.push_back(deadline);
    if (deadline.expiry_ > now_) continue;  // re-armed or disarmed by another's callback
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
