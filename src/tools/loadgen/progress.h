// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace baton::loadgen {

// Progress of a run.
struct Status {
  std::chrono::nanoseconds elapsed{0};
  std::uint64_t sent = 0;
  std::uint64_t ended = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t refused = 0;
  std::uint64_t failed = 0;
  double ttft_p50_ms = 0;
  double ttft_p99_ms = 0;
};

// How far a run is to go.
struct Goal {
  std::optional<std::uint64_t> requests;
  std::optional<std::chrono::nanoseconds> duration;
};

// Role. Reports the progress of a run: a line that is redrawn on a terminal, a line now and then
//   elsewhere.
// Confinement. One thread.
class Progress {
 public:
  enum class Style { Quiet, Lines, Bar };

  Progress(Style style, Goal goal, unsigned width) : style_(style), goal_(goal), width_(width) {}

  // Text to print now; empty most of the time.
  std::string tell(const Status& now);
  // Text that ends the display, so that other text can follow.
  std::string end() const;

  // The share done, from 0 to 1: of what ends the run first.
  double share(const Status& now) const;

 private:
  std::string figures(const Status& now) const;

  Style style_;
  Goal goal_;
  unsigned width_;  // of the terminal
  Status last_;
  std::chrono::nanoseconds next_{0};
  double rate_ = 0;
};

}  // namespace baton::loadgen
