// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Sampling fields mean nothing to the simulator; their types matter to the engines.
#include "sim/dialect.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace baton::sim {

Result<void> check_sampling_types(const nlohmann::json& body) {
  const auto given = [&body](const char* name) {
    const auto found = body.find(name);
    return found == body.end() || found->is_null() ? nullptr : &*found;
  };
  for (const char* name : {"temperature", "top_p", "presence_penalty", "frequency_penalty"}) {
    if (const auto* value = given(name); value != nullptr && !value->is_number()) {
      return fail(Errc::InvalidRequest, fmt::format("{}: must be a number", name));
    }
  }
  if (const auto* seed = given("seed"); seed != nullptr && !seed->is_number_integer()) {
    return fail(Errc::InvalidRequest, "seed: must be an integer");
  }
  return {};
}

Result<void> check_sglang_sampling(const nlohmann::json& body) {
  struct Range {
    const char* name;
    double least;
    double most;
    bool least_included;
    const char* rule;
  };
  constexpr double kAny = 1e300;
  static constexpr Range kRanges[] = {
      {"temperature", 0, kAny, true, "temperature must be a non-negative finite number"},
      {"top_p", 0, 1, false, "top_p must be in (0, 1]"},
      {"min_p", 0, 1, true, "min_p must be in [0, 1]"},
      {"frequency_penalty", -2, 2, true, "frequency_penalty must be in [-2, 2]"},
      {"presence_penalty", -2, 2, true, "presence_penalty must be in [-2, 2]"},
      {"repetition_penalty", 0, 2, false,
       "repetition_penalty must be in (0, 2] (1.0 = no penalty)"},
  };
  for (const Range& range : kRanges) {
    const auto found = body.find(range.name);
    if (found == body.end() || !found->is_number()) continue;
    const auto value = found->get<double>();
    const bool enough = range.least_included ? value >= range.least : value > range.least;
    if (enough && value <= range.most) continue;
    return fail(Errc::InvalidRequest, fmt::format("{}, got {}{}.", range.rule, value,
                                                  value == std::floor(value) ? ".0" : ""));
  }
  return {};
}

}  // namespace baton::sim
