// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/popularity.h"

#include <algorithm>
#include <cmath>

namespace baton::scheduling {
namespace {

constexpr double kMemorySeconds = std::chrono::duration<double>(Popularity::kMemory).count();
constexpr double kYoungSeconds = std::chrono::duration<double>(Popularity::kYoung).count();

// The remainder after that time of a count that was 1 before it.
double left_after(Time from, Time to) {
  const double seconds = std::max(0.0, std::chrono::duration<double>(to - from).count());
  return std::exp(-seconds / kMemorySeconds);
}

}  // namespace

double Popularity::Known::faded(Time now) const { return count * left_after(latest, now); }

void Popularity::came(std::uint64_t beginning, Time now) {
  const locks::Lock lock(mutex_);
  if (const auto place = places_.find(beginning); place != places_.end()) {
    Known& known = *place->second;
    known.count = known.faded(now) + 1;
    known.latest = std::max(known.latest, now);
    known_.splice(known_.begin(), known_, place->second);
    return;
  }
  if (known_.size() >= most_) {
    places_.erase(known_.back().beginning);
    known_.pop_back();
  }
  known_.push_front({.beginning = beginning, .count = 1, .first = now, .latest = now});
  places_.emplace(beginning, known_.begin());
}

double Popularity::per_second(std::uint64_t beginning, Time now) const {
  const locks::Lock lock(mutex_);
  const auto place = places_.find(beginning);
  if (place == places_.end()) return 0;
  const Known& known = *place->second;
  // For a steady stream, the seconds' worth of arrivals counted since the first.
  const double seconds = kMemorySeconds * (1 - left_after(known.first, now));
  return known.faded(now) / std::max(kYoungSeconds, seconds);
}

std::size_t Popularity::size() const {
  const locks::Lock lock(mutex_);
  return known_.size();
}

}  // namespace baton::scheduling
