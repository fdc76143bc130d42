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

// What there is to say of a worker's KV cache in a few words.
struct CacheSummary {
  kvcache::Trusted source = kvcache::Trusted::Nothing;  // of the rank that is worst off
  kvcache::FeedHealth feed = kvcache::FeedHealth::None;
  std::string reason;  // why its feed does not count; may be empty
  std::uint32_t block_size = 0;
  std::size_t blocks = 0;  // that its events say it holds: in all tiers, of all ranks
  bool operator==(const CacheSummary&) const = default;
};

// Nothing where nobody keeps book of it: the index is off, or the worker has come this moment. For
// the control thread.
std::optional<CacheSummary> summarize_cache(const kvcache::KvCacheView& caches,
                                            const fleet::Worker& worker);

}  // namespace baton::api
