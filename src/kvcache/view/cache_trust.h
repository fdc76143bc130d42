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

// The trusted source on a cache's contents.
enum class Trusted : std::uint8_t {
  Nothing,    // none: it counts as empty
  Events,     // the engine's
  Decisions,  // the router's: it is believed to hold the prompts sent to it
};
std::string_view to_string(Trusted trusted);

// The state of a cache's feed.
enum class FeedHealth : std::uint8_t {
  None,     // it has no feed
  Waiting,  // nothing has come yet, and nothing had to
  Live,
  Silent,       // nothing comes although something should, or its worker is away
  Unreachable,  // its engine answers, but nothing has ever listened at its events' address
  Mixed,        // it merges blocks that its engine distinguishes
  Broken,       // its events cannot be read, or the feed cannot be had
};
std::string_view to_string(FeedHealth health);

// The facts of a cache that every prompt needs. Eight bytes, so that it can be changed in one step.
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
using SharedTrust = std::shared_ptr<std::atomic<CacheTrust>>;

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
