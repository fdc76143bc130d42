// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#define XXH_INLINE_ALL
#include "scheduling/adapter_placement.h"

#include <algorithm>
#include <cstdint>
#include <xxhash.h>

namespace baton::scheduling {
namespace {

// By address: several routers in front of the same workers agree, and so do those after a restart.
std::uint64_t draw(std::string_view adapter, const fleet::Worker& worker) {
  const std::string& place = worker.authority();
  return XXH3_64bits_withSeed(place.data(), place.size(),
                              XXH3_64bits(adapter.data(), adapter.size()));
}

}  // namespace

bool AdapterPlacement::has(const fleet::Worker& worker) const {
  const auto loaded = worker.adapters();
  return std::ranges::find(*loaded, name_) != loaded->end();
}

bool AdapterPlacement::draws_more(const fleet::Worker& one, const fleet::Worker& other) const {
  return draw(name_, one) > draw(name_, other);
}

}  // namespace baton::scheduling
