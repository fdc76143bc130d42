// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/fleet.h"
#include "http/routes.h"
#include "kvcache/view/feeds.h"
#include "kvcache/view/kv_cache_view.h"

#include <functional>
#include <vector>

namespace baton::api {

// What the index's API tells of. For the control thread.
struct IndexContext {
  const fleet::Fleet& fleet;
  const kvcache::KvCacheView& caches;
  std::function<std::vector<kvcache::Feeds::Report>()> reports;
};

// What is known of the workers' KV caches: GET /v1/index, and of one prompt: POST /v1/index/match.
std::vector<http::Route> index_routes(IndexContext context);

}  // namespace baton::api
