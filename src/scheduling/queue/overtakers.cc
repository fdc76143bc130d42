// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/overtakers.h"

#include "scheduling/policy/forecast.h"

#include <algorithm>
#include <cmath>

namespace baton::scheduling {
namespace {

constexpr double kLately = 5;  // seconds
// The lengths of which one counts together with another.
constexpr double kShortest = 0.001;
constexpr double kGrowth = 1.35;
// Arrivals are uneven: nearly all requests are overtaken by at most this multiple of the average.
constexpr double kUneven = 2;

// The longest request that counts for a length.
double longest(std::size_t length) {
  return kShortest * std::pow(kGrowth, static_cast<double>(length));
}

}  // namespace

double Overtakers::kept(Time now) const {
  const std::chrono::duration<double> since = now - last_;
  return std::exp(-std::max(0.0, since.count()) / kLately);
}

void Overtakers::came(double seconds, Time now) {
  const double rest = kept(now);
  for (double& rate : rates_) rate *= rest;
  last_ = std::max(last_, now);
  const double length =
      std::ceil(std::log(std::max(seconds, kShortest) / kShortest) / std::log(kGrowth));
  rates_[std::min(static_cast<std::size_t>(length), kLengths - 1)] += seconds / kLately;
}

// Requests of a length overtake it as long as they come early enough, see turn(): for all of its
// wait, or for a time that depends on their length.
double Overtakers::wait_with_them(double seconds, double wait, double per_second, Time now) const {
  const double scale = kUneven * per_second * kept(now);
  std::array<double, kLengths> rates{};
  double all = 0;
  std::size_t shorter = 0;
  for (; shorter < kLengths && longest(shorter) < seconds; ++shorter)
    all += rates[shorter] = scale * rates_[shorter];
  // The longest ones overtake for the shortest time.
  for (; shorter > 0; --shorter) {
    const double rate = rates[shorter - 1];
    const double until = (seconds - longest(shorter - 1)) / kWaitWeight;
    if (all < 1 && wait <= until * (1 - all)) return wait / (1 - all);
    wait += rate * until;
    all -= rate;
  }
  return wait;
}

}  // namespace baton::scheduling
