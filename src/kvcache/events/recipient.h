// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/events/feed.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace baton::kvcache {

// Whether publishers connect to us at that endpoint: its host is a wildcard.
bool is_bound(std::string_view endpoint);

// The feeds on a shared socket that a topic can mean. A topic that names a worker, such as
// `kv@<host>:<port>@<model>`, means that worker's alone, and of the others those that subscribed to
// most of it.
std::vector<const FeedSpec*> meant_by_topic(std::string_view topic,
                                            std::span<const FeedSpec* const> feeds);

}  // namespace baton::kvcache
