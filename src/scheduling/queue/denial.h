// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/error.h"
#include "scheduling/queue/class_queues.h"
#include "scheduling/queue/queue_metrics.h"

#include <chrono>
#include <cstddef>
#include <string_view>

namespace baton::scheduling {

// The reason why a request may not wait, or no longer: for metrics and for the client.
struct Denial {
  Turned why;
  Error error;
};

// `again`: when it is to come again.
Denial full(const Refusal& refusal, std::chrono::seconds again);
Denial too_long(std::string_view policy_class, double seconds, double limit,
                std::chrono::seconds again);
// `seconds`: the expected time from arrival to first token; `objective`: its limit.
Denial too_late(std::string_view policy_class, double seconds, double objective,
                std::chrono::seconds again);
Denial busy(std::string_view policy_class, std::chrono::seconds again);
// `waiting`: the number of other waiting requests.
Denial timed_out(std::string_view policy_class, std::size_t waiting, std::chrono::seconds again);

}  // namespace baton::scheduling
