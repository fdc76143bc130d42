// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "model/worker.h"
#include "scheduling/policy/forecast_error.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <atomic>
#include <memory>
#include <string>

namespace baton::fleet {

// Role. Measures the forecasts for one set of workers: counts their errors, says how far they are
//   trusted, and logs when load decides in their place.
// Confinement. Any thread.
// Lifetime. Shared by the set and its bookings; the telemetry outlives it.
class Forecasts {
 public:
  Forecasts(std::string model, std::string name_space, model::Role role,
            telemetry::Registry& metrics, telemetry::Logger& log);

  // A prompt has been computed: see ForecastError::add.
  void add(double expected, double actual, scheduling::Time now);
  double trust(scheduling::Time now) const { return error_.trust(now); }

 private:
  const std::string model_;
  const std::string name_space_;
  const model::Role role_;
  telemetry::Logger& log_;
  telemetry::Histogram& missed_;
  scheduling::ForecastError error_;
  std::atomic<bool> distrusted_{false};  // as the log last said
};

// When the prompt of a booking is expected to have been computed.
struct Expectation {
  std::shared_ptr<Forecasts> of;  // which are told when it was
  scheduling::Time booked;
  double seconds = 0;  // from then on
};

}  // namespace baton::fleet
