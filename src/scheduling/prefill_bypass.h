// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "telemetry/metrics.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace baton::scheduling {

// The answers to whether a decode worker should compute a prompt itself.
enum class Bypassed : std::uint8_t {
  DeclinedByPolicy,
  AllowedGateDisabled,
  DeniedBusyUnknown,
  DeniedBusy,
  AllowedNotBusy,
};
inline constexpr std::size_t kBypassDecisions = 5;
std::string_view to_string(Bypassed decision);

// One for each decision, in the order of the enumeration.
using BypassCounters = std::array<telemetry::Counter*, kBypassDecisions>;

}  // namespace baton::scheduling
