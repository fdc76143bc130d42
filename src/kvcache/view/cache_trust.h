// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "kvcache/index/block_hash.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

namespace baton::kvcache {

// Whose word counts on what a cache holds.
enum class Trusted : std::uint8_t {
  Nothing,    // nobody's: it counts as empty
  Events,     // the engine's
  Decisions,  // our own: it is believed to hold what it was sent
};
std::string_view to_string(Trusted trusted);

// What has become of a cache's feed.
enum class FeedHealth : std::uint8_t {
  None,     // it has no feed
  Waiting,  // nothing has come yet, and nothing had to
  Live,
  Silent,       // nothing comes although something should, or its worker is away
  Unreachable,  // its engine answers, and nothing has ever listened where its events should be
  Mixed,        // it does not tell apart blocks that its engine does
  Broken,       // what comes cannot be read, or the feed cannot be had
};
std::string_view to_string(FeedHealth health);

// What must be known of a cache for each prompt. Eight bytes, so that it can be changed in one step.
struct CacheTrust {
  std::uint32_t block_size = 0;
  bool bigram = false;
  FeedHealth health = FeedHealth::None;
  bool believed = true;
  bool mixed = false;

  BlockShape shape() const { return {.size = block_size, .bigram = bigram}; }
  Trusted trusted(config::IndexSource source) const;
};
static_assert(sizeof(CacheTrust) == 8);
using SharedVerdict = std::shared_ptr<std::atomic<CacheTrust>>;

// Here, since it is asked of thousands for each prompt.
inline Trusted CacheTrust::trusted(config::IndexSource source) const {
  switch (source) {
    case config::IndexSource::Off:
      return Trusted::Nothing;
    case config::IndexSource::Decisions:
      return Trusted::Decisions;
    case config::IndexSource::Events:
    case config::IndexSource::Auto:
      break;
  }
  if (health == FeedHealth::Live && !mixed) return believed ? Trusted::Events : Trusted::Nothing;
  return source == config::IndexSource::Auto ? Trusted::Decisions : Trusted::Nothing;
}

}  // namespace baton::kvcache
