// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/forecasts.h"

#include <array>
#include <utility>

namespace baton::fleet {
namespace {

constexpr std::array kParts{0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0};

}  // namespace

Forecasts::Forecasts(std::string model, std::string name_space, model::Role role,
                     telemetry::Registry& metrics, telemetry::Logger& log)
    : model_(std::move(model)),
      name_space_(std::move(name_space)),
      role_(role),
      log_(log),
      missed_(metrics.histogram(
          "baton_forecast_error",
          "By what part forecasts of when a prompt is computed missed, from 0 to 1.",
          {{"model", model_}, {"role", std::string(model::to_string(role))}}, kParts)) {}

void Forecasts::add(double expected, double actual, scheduling::Time now) {
  missed_.observe(scheduling::ForecastError::missed(expected, actual));
  error_.add(expected, actual, now);
  const double trust = error_.trust(now);
  // Between the two bounds the last report holds, so that a moving error is reported once.
  if (trust > 0 && trust < 1) return;
  const bool distrusted = trust == 0;
  if (distrusted_.exchange(distrusted, std::memory_order_relaxed) == distrusted) return;
  log_.write(distrusted ? telemetry::Level::Warning : telemetry::Level::Info, "forecasts_judged",
             {{"model", model_},
              {"namespace", name_space_},
              {"role", model::to_string(role_)},
              {"error", error_.value(now)},
              {"decides", distrusted ? "load" : "forecast"}});
}

}  // namespace baton::fleet
