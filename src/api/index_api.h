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

// Data sources of the index's API. For the control thread.
struct IndexContext {
  const fleet::Fleet& fleet;
  const kvcache::KvCacheView& caches;
  std::function<std::vector<kvcache::Feeds::Report>()> reports;
};

// GET /v1/index: the tracked contents of the workers' KV caches. POST /v1/index/match: the same for
// one prompt.
std::vector<http::Route> index_routes(IndexContext context);

}  // namespace baton::api
