// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/forecast_error.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace baton::scheduling {
namespace {

// Weight of a new prompt: about the last thirty count.
constexpr double kNewest = 1.0 / 32;
// After so long without prompts the error begins to fade.
constexpr std::chrono::seconds kIdle{10};
constexpr std::chrono::duration<double> kHalfLife{5};

}  // namespace

double ForecastError::missed(double expected, double actual) {
  const double part = std::abs(expected - actual) / std::max({expected, actual, kLeastSeconds});
  return std::isfinite(part) ? std::min(part, 1.0) : 1;
}

void ForecastError::add(double expected, double actual, Time now) {
  const locks::Lock lock(mutex_);
  error_.store(std::lerp(value(now), missed(expected, actual), kNewest), std::memory_order_relaxed);
  latest_.store(std::max(latest_.load(std::memory_order_relaxed), now.time_since_epoch().count()),
                std::memory_order_relaxed);
}

double ForecastError::value(Time now) const {
  const Time latest{Clock::duration(latest_.load(std::memory_order_relaxed))};
  const auto idle = std::max<Clock::duration>(now - latest - kIdle, Clock::duration(0));
  return error_.load(std::memory_order_relaxed) * std::exp2(-(idle / kHalfLife));
}

double ForecastError::trust(Time now) const {
  return std::clamp((kUseless - value(now)) / (kUseless - kTrusted), 0.0, 1.0);
}

}  // namespace baton::scheduling
