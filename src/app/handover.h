// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <chrono>
#include <optional>
#include <string_view>
#include <sys/types.h>

namespace baton::app {

// Role. Decides how a process hands its work over to the next one. No I/O: events come in, steps to
//   take come out.
// Confinement. The control thread.
// Invariants. At most one successor at a time. The work is handed over only after the successor has
//   said that it is ready, and never twice.
class Handover {
 public:
  using Clock = std::chrono::steady_clock;

  enum class Act {
    Nothing,
    Refuse,    // there is no restart now; `why` says why
    Save,      // what the successor is to read
    Start,     // the successor
    HandOver,  // tell it to begin, and leave
    GiveUp,    // end the successor, if it is there, and go on as before
  };
  struct Step {
    Act act = Act::Nothing;
    std::string_view kind = {};  // of what went wrong, for metrics
    std::string_view why = {};
  };

  explicit Handover(std::chrono::milliseconds timeout) : timeout_(timeout) {}

  // An operator wants a restart; `objection` is what else speaks against it, if anything.
  Step asked(std::string_view objection);
  Step saved(Clock::time_point now);
  Step could_not_start();
  // A line from the successor: "pid 123", "checked" (it has asked all workers), "ready" (it could
  // serve). Others are those of later versions, and mean nothing.
  void heard(std::string_view line);
  // The channel to the successor is closed.
  Step lost();
  // The successor was told to begin, and this process leaves.
  void handed_over() { phase_ = Phase::Over; }
  // Call periodically; `ready`: whether this process itself could serve. If it could not, a
  // successor that cannot either is no worse.
  Step looked(Clock::time_point now, bool ready);
  // This process is about to end.
  Step stopped();

  // The successor's process id, as it reports it.
  std::optional<pid_t> pid() const { return pid_; }
  bool under_way() const { return phase_ == Phase::Saving || phase_ == Phase::Starting; }

 private:
  enum class Phase { Idle, Saving, Starting, Over };

  Step give_up(Phase next, std::string_view kind, std::string_view why);

  const std::chrono::milliseconds timeout_;
  Phase phase_ = Phase::Idle;
  Clock::time_point deadline_;
  std::optional<pid_t> pid_;
  bool checked_ = false;
  bool ready_ = false;
};

}  // namespace baton::app
