// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/routing.h"
#include "scheduling/queue/class_queues.h"
#include "telemetry/metrics.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace baton::scheduling {

enum class Turned : std::uint8_t {
  Requests,
  RawIslTokens,
  CachedTokens,
  Busy,
  Timeout,
  TooLong,
  Late
};

// Metrics of the queue of a model; the queues of its namespaces share them.
struct QueueMetrics {
  struct PolicyClass {
    telemetry::Gauge* requests;
    telemetry::Gauge* tokens;
    telemetry::Gauge* cached_tokens;
    telemetry::Histogram* seconds;
  };
  std::vector<PolicyClass> classes;            // as in the configuration
  std::array<telemetry::Counter*, 7> refused;  // by Turned

  QueueMetrics(telemetry::Registry& registry, const std::string& model,
               const config::Queue& config);

  void came(std::size_t policy_class, const Totals& weight) const { add(policy_class, weight, 1); }
  void left(std::size_t policy_class, const Totals& weight) const { add(policy_class, weight, -1); }
  void turned_away(Turned why) const { refused[static_cast<std::size_t>(why)]->add(); }

 private:
  void add(std::size_t policy_class, const Totals& weight, std::int64_t sign) const;
};

}  // namespace baton::scheduling
