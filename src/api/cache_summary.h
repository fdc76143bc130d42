// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/worker.h"
#include "kvcache/view/kv_cache_view.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace baton::api {

// Summary of a worker's KV cache.
struct CacheSummary {
  kvcache::Trusted source = kvcache::Trusted::Nothing;  // of the rank that is worst off
  kvcache::FeedHealth feed = kvcache::FeedHealth::None;
  std::string reason;  // why its feed does not count; may be empty
  std::uint32_t block_size = 0;
  std::size_t blocks = 0;  // that its events say it holds: in all tiers, of all ranks
  bool operator==(const CacheSummary&) const = default;
};

// nullopt if the cache is not tracked: the index is off, or the worker was added just now. For the
// control thread.
std::optional<CacheSummary> summarize_cache(const kvcache::KvCacheView& caches,
                                            const fleet::Worker& worker);

}  // namespace baton::api
