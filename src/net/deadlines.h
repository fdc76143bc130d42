// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/intrusive/list.hpp>

#include <chrono>
#include <functional>

namespace baton::net {

class Deadlines;

// Role. A point in time after which a callback runs, once per arming. Moving it costs a store:
//   nothing is queued or allocated.
// Confinement. The I/O thread of its Deadlines.
class Deadline : public boost::intrusive::list_base_hook<
                     boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  Deadline(Deadlines& deadlines, std::function<void()> on_expiry);
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  void arm(std::chrono::milliseconds from_now);
  void disarm() { expiry_ = kNever; }
  // Brings an armed one forward, where it is further away. One that is not armed stays so.
  void hasten(std::chrono::milliseconds from_now);

 private:
  friend class Deadlines;
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::time_point kNever = Clock::time_point::max();

  Deadlines& deadlines_;
  std::function<void()> on_expiry_;
  Clock::time_point expiry_ = kNever;
};

// Role. The armed deadlines of one I/O thread, checked every kTick. A stream re-arms its timeout at
//   every token; a timer queue would pay a heap operation for each, this pays nothing.
// Confinement. One I/O thread.
// Permitted imprecision. A deadline fires up to three ticks late, never early. While the loop
//   stands still, as on a paused machine, no time goes by: no peer could have been heard in time.
class Deadlines {
 public:
  static constexpr std::chrono::milliseconds kTick{50};
  static constexpr std::chrono::milliseconds kSlack =
      2 * kTick;  // more between two ticks is a stall

  explicit Deadlines(boost::asio::io_context& io);
  void stop();
  std::chrono::steady_clock::time_point now() const { return now_; }
  // The same on a clock that stands while the loop does: only this time can be blamed on a peer.
  std::chrono::steady_clock::time_point lived() const { return now_ - stood_still_; }

 private:
  friend class Deadline;
  void tick();

  bool stopped_ = false;
  boost::asio::steady_timer timer_;
  std::chrono::steady_clock::time_point now_;
  std::chrono::steady_clock::duration stood_still_{0};
  // Also holds deadlines disarmed since the last tick.
  boost::intrusive::list<Deadline, boost::intrusive::constant_time_size<false>> armed_;
};

}  // namespace baton::net
