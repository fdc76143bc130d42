// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::loadgen {

// A router's data about its workers at one time.
struct FleetMoment {
  double at_seconds = 0;
  // Metric (without baton_worker_) → role and name of the worker → value.
  std::map<std::string, std::map<std::pair<std::string, std::string>, double>> gauges;
  double prompt_tokens = 0;    // so far
  double reported_cached = 0;  // tokens that engines said they had cached, so far
};

// Reads the workers' metrics from a page of Prometheus' text; skips everything else.
FleetMoment read_metrics(std::string_view page, double at_seconds);

// Role (aggregated workers decode) and name of each worker of a model in the answer of GET /workers.
std::vector<std::pair<std::string, std::string>> read_workers(std::string_view answer,
                                                              std::string_view model);

// Role. The router's reports over a run, every second or, for a long run, less often.
// Confinement. One thread.
// Invariants. At most kMost moments, evenly spread.
class FleetHistory {
 public:
  static constexpr std::size_t kMost = 1800;

  void add(FleetMoment moment);
  const std::vector<FleetMoment>& moments() const { return moments_; }
  // Every stride()-th moment offered is kept.
  std::size_t stride() const { return stride_; }

 private:
  std::size_t stride_ = 1;
  std::size_t offered_ = 0;
  std::vector<FleetMoment> moments_;
};

}  // namespace baton::loadgen
