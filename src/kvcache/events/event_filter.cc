// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/event_filter.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace baton::kvcache {
namespace {

// More than a model has.
constexpr std::size_t kMostGroups = 256;

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

bool is(std::string_view text, std::string_view in_capitals) {
  return std::ranges::equal(text, in_capitals, {}, upper);
}

struct NamedTier {
  std::string_view medium;
  Tier tier;
};
// OBJ is an object store, FS a mounted file system: vLLM 0.26 told them apart, later releases say
// STORAGE.
constexpr std::array kNamedTiers = std::to_array<NamedTier>({
    {"GPU", Tier::Device},
    {"CPU", Tier::Host},
    {"CPU_PINNED", Tier::Host},
    {"STORAGE", Tier::Disk},
    {"DISK", Tier::Disk},
    {"EXTERNAL", Tier::External},
    {"DEVICE", Tier::Device},
    {"CPU_TIER1", Tier::Host},
    {"CPU_TIER2", Tier::Disk},
    {"NVME", Tier::Disk},
    {"FS", Tier::Disk},
    {"OBJ", Tier::External},
    {"NETWORK", Tier::External},
    {"REMOTE", Tier::External},
    {"SHARED", Tier::External},
});

// Only these keep all of a prefix.
bool is_main_attention(std::string_view kind) {
  return kind == "full_attention" || kind == "mla_attention" || kind == "sink_full_attention";
}

}  // namespace

std::optional<Tier> tier_of(std::string_view medium) {
  if (medium.empty()) return Tier::Device;
  const auto found = std::ranges::find_if(
      kNamedTiers, [&](const NamedTier& named) { return is(medium, named.medium); });
  if (found == kNamedTiers.end()) return std::nullopt;
  return found->tier;
}

std::expected<Tier, Skipped> EventFilter::classify(const Event& event) {
  if (!event.ownership.empty()) return std::unexpected(Skipped::Owned);
  if (!event.locality.empty() && !is(event.locality, "LOCAL"))
    return std::unexpected(Skipped::NotLocal);
  const auto tier = tier_of(event.medium);
  if (!tier) return std::unexpected(Skipped::UnknownMedium);
  if (const auto reason = classify_group(event)) return std::unexpected(*reason);
  return *tier;
}

std::optional<Skipped> EventFilter::classify_group(const Event& event) {
  const auto known =
      event.group ? std::ranges::find(groups_, *event.group, &std::pair<std::uint64_t, bool>::first)
                  : groups_.end();
  if (!event.kind.empty()) {
    const bool main = is_main_attention(event.kind);
    if (known != groups_.end()) {
      known->second = main;
    } else if (event.group && groups_.size() < kMostGroups) {
      groups_.emplace_back(*event.group, main);
    }
    return main ? std::nullopt : std::optional(Skipped::NotMainAttention);
  }
  if (known != groups_.end())
    return known->second ? std::nullopt : std::optional(Skipped::NotMainAttention);
  // A model with one group only, or a release that does not say of which kind they are: the first
  // one is the best guess.
  return event.group.value_or(0) == 0 ? std::nullopt : std::optional(Skipped::UnknownGroup);
}

bool EventFilter::knows_nothing_special() const {
  return std::ranges::all_of(groups_,
                             [](const auto& group) { return group.first == 0 && group.second; });
}

}  // namespace baton::kvcache
