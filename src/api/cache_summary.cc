// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "api/cache_summary.h"

#include <array>
#include <numeric>
#include <utility>

namespace baton::api {
namespace {

using kvcache::FeedHealth;
using kvcache::Trusted;

// Severity: the feed counts before the source used.
std::pair<int, int> badness(FeedHealth feed, Trusted source) {
  const auto of_feed = [feed] {
    switch (feed) {
      case FeedHealth::Live:
        return 0;
      case FeedHealth::None:
        return 1;
      case FeedHealth::Waiting:
        return 2;
      case FeedHealth::Silent:
        return 3;
      case FeedHealth::Unreachable:
        return 4;
      case FeedHealth::Mixed:
        return 5;
      case FeedHealth::Broken:
        return 6;
    }
    std::unreachable();
  };
  return {of_feed(), source == Trusted::Nothing ? 1 : 0};
}

}  // namespace

std::optional<CacheSummary> summarize_cache(const kvcache::KvCacheView& caches,
                                            const fleet::Worker& worker) {
  std::optional<CacheSummary> summary;
  for (std::uint32_t rank = 0; rank < worker.ranks(); ++rank) {
    const auto cache = caches.find({worker.id(), rank});
    if (!cache) continue;
    const FeedHealth feed = cache->health();
    const Trusted source = cache->trusted(caches.settings().source);
    if (!summary) {
      summary = {.source = source,
                 .feed = feed,
                 .reason = cache->reason(),
                 .block_size = cache->shape().size,
                 .blocks = 0};
    } else if (badness(feed, source) > badness(summary->feed, summary->source)) {
      summary->source = source;
      summary->feed = feed;
      summary->reason = cache->reason();
    }
    const auto holding = caches.index().holding(cache->slot());
    summary->blocks += std::reduce(holding.blocks.begin(), holding.blocks.end());
  }
  return summary;
}

}  // namespace baton::api
