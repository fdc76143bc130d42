// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/routing.h"
#include "libs/locks/mutex.h"
#include "telemetry/metrics.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace baton::scheduling {

// Role. How well one class of requests keeps its objective, and how early a request must find its
//   worker so that it does.
// Confinement. Any thread; a short lock for each request served.
// Lifetime. Shared by the pool and its requests; the registry outlives it.
class SloRecord {
 public:
  using Time = std::chrono::steady_clock::time_point;

  SloRecord(const config::Slo& slo, telemetry::Registry& registry, const std::string& model,
            const std::string& name_space, const std::string& policy_class);

  const config::Slo& slo() const { return slo_; }

  // The share of slo().ttft that a forecast may use so that nearly all requests keep the objective.
  // Forecasts err: if first tokens were late, or admitted requests had to be refused, requests are
  // admitted for less of the objective.
  double margin() const { return margin_.load(std::memory_order_relaxed); }

  // A stream has ended, in seconds; nothing: it had no first token, or only one.
  void served(std::optional<double> ttft, std::optional<double> itl, Time now);
  // The engines failed it: it kept nothing.
  void failed(Time now);
  // `late`: it had been admitted, and its turn did not come in time.
  void refused(bool late);

  // The share of the requests served in about the last minute that kept the objective.
  double attainment(Time now) const;

 private:
  void count(bool kept, Time now);
  void move_margin(bool in_time);
  struct Seen {
    double kept = 0;
    double all = 0;
  };
  Seen seen(Time now) const REQUIRES(mutex_);

  const config::Slo slo_;
  std::atomic<double> margin_;
  // The namespace's series end with its last record.
  const std::shared_ptr<telemetry::Counter> met_;
  const std::shared_ptr<telemetry::Counter> missed_;
  const std::shared_ptr<telemetry::Counter> refused_;
  const std::shared_ptr<telemetry::Share> attainment_;
  mutable locks::Mutex mutex_;
  Seen seen_ GUARDED_BY(mutex_);  // as of last_
  Time last_ GUARDED_BY(mutex_);
};

}  // namespace baton::scheduling
