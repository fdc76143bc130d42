// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Sampling fields mean nothing to the simulator; their types matter to the engines.
#include "tools/sim/dialect.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

}  // namespace baton::sim
