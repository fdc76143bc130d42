// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "admission/drain_rate.h"

#include <algorithm>
#include <cmath>

namespace baton::admission {
namespace {

constexpr double kMemory = 10;  // seconds
constexpr double kStale = 3 * kMemory;
constexpr double kSoonest = 1;
constexpr double kLatest = 60;

double seconds(std::chrono::steady_clock::duration duration) {
  return std::max(0.0, std::chrono::duration<double>(duration).count());
}

}  // namespace

DrainRate::DrainRate(Clock::time_point now) : beginning_(now), last_(now) {}

double DrainRate::decayed(Clock::time_point now) const {
  return tokens_ * std::exp(-seconds(now - last_) / kMemory);
}

void DrainRate::begin(Clock::time_point now) {
  if (seconds(now - last_) > kStale) *this = DrainRate(now);
}

void DrainRate::served(std::uint64_t tokens, Clock::time_point now) {
  tokens_ = decayed(now) + static_cast<double>(tokens);
  last_ = std::max(last_, now);
}

std::chrono::seconds DrainRate::time_for(std::uint64_t tokens, Clock::time_point now) const {
  const double age = seconds(now - beginning_);
  const double in_memory = decayed(now);
  // What the memory would hold had one token been served each second since the beginning.
  const double steady = kMemory * (1 - std::exp(-age / kMemory));
  // Where nothing has been served yet, that it takes at least as long again is all there is to say.
  const double wait = in_memory > 0 ? static_cast<double>(tokens) * steady / in_memory : age;
  return std::chrono::seconds(static_cast<int>(std::ceil(std::clamp(wait, kSoonest, kLatest))));
}

}  // namespace baton::admission
