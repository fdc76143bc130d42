// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/queue_metrics.h"

#include <string_view>

namespace baton::scheduling {

QueueMetrics::QueueMetrics(telemetry::Registry& registry, const std::string& model,
                           const config::Queue& config)
    : refused() {
  for (const config::QueueClass& each : config.classes) {
    classes.push_back(
        {.requests = &registry.gauge("baton_queue_requests", "Requests that wait for a worker.",
                                     {{"model", model}, {"class", each.name}}),
         .tokens = &registry.gauge("baton_queue_tokens", "Prompt tokens of the requests that wait.",
                                   {{"model", model}, {"class", each.name}}),
         .cached_tokens = &registry.gauge("baton_queue_cached_tokens",
                                          "Of those, what a worker that they can go to has cached.",
                                          {{"model", model}, {"class", each.name}}),
         .seconds = &registry.histogram("baton_queue_seconds", "How long requests waited.",
                                        {{"model", model}, {"class", each.name}})});
  }
  constexpr std::array<std::string_view, 7> kReasons{
      "requests", "raw_isl_tokens", "cached_tokens", "busy", "timeout", "wait", "slo"};
  for (std::size_t i = 0; i < kReasons.size(); ++i) {
    refused[i] = &registry.counter("baton_queue_refused_total",
                                   "Requests that were not let through to a worker.",
                                   {{"model", model}, {"reason", std::string(kReasons[i])}});
  }
}

void QueueMetrics::add(std::size_t policy_class, const Totals& weight, std::int64_t sign) const {
  const PolicyClass& its = classes[policy_class];
  its.requests->add(sign * static_cast<std::int64_t>(weight.requests));
  its.tokens->add(sign * static_cast<std::int64_t>(weight.prompt_tokens));
  its.cached_tokens->add(sign * static_cast<std::int64_t>(weight.cached_tokens));
}

}  // namespace baton::scheduling
