// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/view/cache_trust.h"
#include "kvcache/view/feed_plan.h"
#include "model/worker.h"

#include <string>

namespace baton::kvcache {

// Why a feed in this state does not count, and what to check; empty if nothing is amiss.
std::string feed_reason(FeedHealth health, const FeedPlan& plan, model::Engine engine);

}  // namespace baton::kvcache
