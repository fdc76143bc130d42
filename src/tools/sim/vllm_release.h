// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "model/version.h"

namespace baton::sim {

// vLLM's releases, where they differ in what a router reads or has to send. 0.12 is the oldest one that is simulated in full.

// Before this a decode worker names the blocks by its own request's id, so both legs have to have the same.
inline constexpr model::Version kVllmTellsRequestId{.major = 0, .minor = 13, .patch = 0};
// Before this `remote_block_ids` is one list, then a list for each group of caches.
inline constexpr model::Version kVllmGroupsBlocks{.major = 0, .minor = 19, .patch = 0};
// From this on blocks are also kept where the first token ends the request, and the prefill worker is told of refused requests.
inline constexpr model::Version kVllmKeepsAfterStop{.major = 0, .minor = 21, .patch = 0};
// Up to 0.13 usage has `cached_tokens` alone, and nothing where nothing was cached; 0.32 says 0 and more. Those between were not seen.
inline constexpr model::Version kVllmTellsMoreOfCache{.major = 0, .minor = 14, .patch = 0};

}  // namespace baton::sim
