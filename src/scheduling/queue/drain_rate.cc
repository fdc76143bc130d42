// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/drain_rate.h"

#include <algorithm>
#include <cmath>

namespace baton::scheduling {
namespace {

constexpr double kMemory = 10;  // seconds
constexpr double kStale = 3 * kMemory;
constexpr double kEnough = 0.25;
constexpr double kSoonest = 1;
constexpr double kLatest = 60;

double seconds(std::chrono::steady_clock::duration duration) {
  return std::max(0.0, std::chrono::duration<double>(duration).count());
}

}  // namespace

DrainRate::DrainRate(Clock::time_point now) : begun_(now), last_(now) {}

DrainRate::Seen DrainRate::seen(Clock::time_point now) const {
  if (!waits_) return seen_;
  const double kept = std::exp(-seconds(now - last_) / kMemory);
  return {.work = seen_.work * kept, .seconds = seen_.seconds * kept + kMemory * (1 - kept)};
}

void DrainRate::begin(Clock::time_point now) {
  if (seconds(now - last_) > kStale) seen_ = {};
  waits_ = true;
  begun_ = last_ = std::max(last_, now);
}

void DrainRate::end(Clock::time_point now) {
  seen_ = seen(now);
  last_ = std::max(last_, now);
  waits_ = false;
}

void DrainRate::served(double work, Clock::time_point now) {
  seen_ = seen(now);
  seen_.work += work;
  last_ = std::max(last_, now);
}

std::optional<double> DrainRate::forecast(double work, Clock::time_point now) const {
  const Seen known = seen(now);
  if (known.work <= 0 || known.seconds < kEnough) return std::nullopt;
  return work * known.seconds / known.work;
}

std::chrono::seconds DrainRate::time_for(double work, Clock::time_point now) const {
  // If nothing has been served yet, the best guess is at least the time waited so far.
  const double wait = forecast(work, now).value_or(waits_ ? seconds(now - begun_) : 0);
  return std::chrono::seconds(static_cast<int>(std::ceil(std::clamp(wait, kSoonest, kLatest))));
}

}  // namespace baton::scheduling
