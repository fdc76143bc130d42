// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"

#include <chrono>
#include <optional>
#include <string_view>

namespace baton::scheduling {

inline constexpr std::string_view kPatienceHeader = "x-baton-queue";

// How long a request may wait until a worker has time for it.
struct Patience {
  std::optional<std::chrono::milliseconds> at_most;  // absent: as long as it takes; 0: not at all

  static Patience without_end() { return {}; }
  static Patience none() { return {.at_most = std::chrono::milliseconds(0)}; }
  // As the configuration has it: 0 is as long as it takes.
  static Patience configured(std::chrono::milliseconds patience) {
    return patience.count() == 0 ? without_end() : Patience{.at_most = patience};
  }
  bool operator==(const Patience&) const = default;
};

// wait, fail-fast, or a duration: 500ms, 2s. Anything else is InvalidRouting; `where` is the header or
// field that said it.
Result<Patience> parse_patience(std::string_view text, std::string_view where = kPatienceHeader);

}  // namespace baton::scheduling
