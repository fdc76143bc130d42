// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/wait_bound.h"

#include <algorithm>

namespace baton::scheduling {
namespace {

constexpr std::chrono::milliseconds kBurst{500};
// Shares of the longest wait: the bound under pressure, and the wait at which pressure is over.
constexpr double kPressedShare = 1.0 / 4;
constexpr double kCalm = 1.0 / 16;
// Below this the queue is not full any more.
constexpr double kFull = 0.9;

}  // namespace

bool WaitBound::allows(double seconds, double at_least, double whole, Time now) {
  if (longest_ <= 0) return true;
  if (whole <= kCalm * longest_) pressed_ = false;
  if (whole <= kFull * longest_) full_since_.reset();
  if (whole > longest_ && !full_since_) full_since_ = now;
  if (full_since_ && now - *full_since_ >= kBurst) pressed_ = true;
  limit_ = std::max(pressed_ ? kPressedShare * longest_ : longest_, at_least);
  return seconds <= limit_;
}

}  // namespace baton::scheduling
