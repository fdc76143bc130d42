// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/events/event.h"
#include "kvcache/events/feed.h"

#include <cstdint>
#include <expected>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::kvcache {

// Engines, their releases and their connectors have names of their own for the tiers, in either
// case. Empty is the device.
std::optional<Tier> tier_of(std::string_view medium);

// Role. Separates the events that make a prefix reusable on this worker from all others.
// Confinement. One thread.
// Invariants. A cache group is classified by its last store; removals do not tell.
class EventFilter {
 public:
  // The tier it speaks of, or why it does not count. Not for events that clear.
  std::expected<Tier, Skipped> classify(const Event& event);
  void forget() { groups_.clear(); }
  // Its judgement is the same as before any event.
  bool knows_nothing_special() const;

 private:
  std::optional<Skipped> classify_group(const Event& event);

  std::vector<std::pair<std::uint64_t, bool>> groups_;  // whether they are of the main attention
};

}  // namespace baton::kvcache
