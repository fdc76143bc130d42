// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "kvcache/index/index.h"
#include "kvcache/view/feed_plan.h"

#include <array>
#include <string_view>
#include <utility>

// Names in metrics and in messages to operators.
namespace baton::kvcache {

// By tier.
inline constexpr std::array<std::string_view, kTiers> kTierNames{"device", "host", "disk",
                                                                 "external"};

constexpr std::string_view name_of(FeedPlan::Way way) {
  switch (way) {
    case FeedPlan::Way::None:
      return "none";
    case FeedPlan::Way::Subscribe:
      return "subscribe";
    case FeedPlan::Way::Poll:
      return "poll";
  }
  std::unreachable();
}

// As spelled in the configuration.
constexpr std::string_view name_of(config::IndexSource source) {
  switch (source) {
    case config::IndexSource::Auto:
      return "auto";
    case config::IndexSource::Events:
      return "events";
    case config::IndexSource::Decisions:
      return "decisions";
    case config::IndexSource::Off:
      return "off";
  }
  std::unreachable();
}

}  // namespace baton::kvcache
