// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"

#include <chrono>
#include <optional>
#include <string_view>

namespace baton::scheduling {

inline constexpr std::string_view kMaxQueueWaitHeader = "x-baton-queue";

// How long a request may wait until a worker has time for it.
struct MaxQueueWait {
  std::optional<std::chrono::milliseconds> at_most;  // absent: as long as it takes; 0: not at all

  static MaxQueueWait without_end() { return {}; }
  static MaxQueueWait none() { return {.at_most = std::chrono::milliseconds(0)}; }
  // From the configuration: 0 means no limit.
  static MaxQueueWait configured(std::chrono::milliseconds patience) {
    return patience.count() == 0 ? without_end() : MaxQueueWait{.at_most = patience};
  }
  bool operator==(const MaxQueueWait&) const = default;
};

// wait, fail-fast, or a duration: 500ms, 2s. Anything else is InvalidRouting; `where` is its header
// or field.
Result<MaxQueueWait> parse_max_queue_wait(std::string_view text,
                                          std::string_view where = kMaxQueueWaitHeader);

}  // namespace baton::scheduling
