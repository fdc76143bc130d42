// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#define XXH_INLINE_ALL
#include "fleet/adapter_placement.h"

#include <algorithm>
#include <cstdint>
#include <xxhash.h>

namespace baton::fleet {
namespace {

// By address: several routers in front of the same workers agree, and so do those after a restart.
std::uint64_t draw(std::string_view adapter, const Worker& worker) {
  const std::string& place = worker.authority();
  return XXH3_64bits_withSeed(place.data(), place.size(),
                              XXH3_64bits(adapter.data(), adapter.size()));
}

}  // namespace

bool AdapterPlacement::has(const Worker& worker) const {
  const auto loaded = worker.adapters();
  return std::ranges::find(*loaded, name_) != loaded->end();
}

bool AdapterPlacement::draws_more(const Worker& one, const Worker& other) const {
  return draw(name_, one) > draw(name_, other);
}

}  // namespace baton::fleet
