// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/loadgen/fleet_history.h"
#include "tools/loadgen/options.h"
#include "tools/loadgen/tally.h"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::loadgen {

// A run that is over.
struct Outcome {
  Tally tally;
  FleetHistory fleet;
  // Those that the router says it has: role (prefill or decode) and name.
  std::vector<std::pair<std::string, std::string>> known_workers;
  std::string model;
  std::chrono::system_clock::time_point started_at{};
  std::chrono::nanoseconds elapsed{0};
  bool interrupted = false;
};

inline constexpr std::string_view kFormat = "baton-bench";
inline constexpr int kFormatVersion = 1;

// The result as docs/bench.md describes it.
nlohmann::ordered_json result_json(const Plan& plan, const Outcome& outcome);

// Reads one that was written before; says what is wrong with what is none.
Result<nlohmann::ordered_json> read_result(const std::string& path);

// The summary for a person.
std::string summary_text(const nlohmann::ordered_json& result);

}  // namespace baton::loadgen
