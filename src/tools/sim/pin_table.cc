// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/pin_table.h"

#include <algorithm>
#include <utility>

namespace baton::sim {

void PinTable::pin(std::string key, std::vector<BlockId> blocks, std::uint32_t tokens,
                   TimePoint expires) {
  pinned_blocks_ += blocks.size();
  pins_.insert_or_assign(std::move(key),
                         Pin{.blocks = std::move(blocks), .tokens = tokens, .expires = expires});
}

Result<const PinTable::Pin*> PinTable::fetch(std::string_view key, TimePoint now,
                                             std::chrono::nanoseconds lease) {
  const auto found = pins_.find(std::string(key));
  if (found == pins_.end() || found->second.expires <= now) {
    return fail(Errc::NotFound, "no blocks are held for this hand-off");
  }
  if (found->second.fetched) return fail(Errc::InvalidRequest, "the blocks were fetched already");
  found->second.fetched = found->second.ever_fetched = true;
  found->second.transfer = ++transfers_;
  found->second.expires = now + lease;
  return &found->second;
}

void PinTable::give_up(std::string_view key, std::uint64_t transfer, bool again) {
  const auto found = pins_.find(std::string(key));
  if (found == pins_.end() || found->second.transfer != transfer) return;
  found->second.transfer = 0;
  if (again) found->second.fetched = false;
}

std::uint64_t PinTable::transfer_of(std::string_view key) const {
  const auto found = pins_.find(std::string(key));
  return found == pins_.end() ? 0 : found->second.transfer;
}

std::uint64_t PinTable::transfers_under_way() const {
  const auto moving = [](const auto& entry) { return entry.second.transfer != 0; };
  return static_cast<std::uint64_t>(std::ranges::count_if(pins_, moving));
}

std::vector<BlockId> PinTable::release(std::string_view key) {
  const auto found = pins_.find(std::string(key));
  if (found == pins_.end()) return {};
  std::vector<BlockId> blocks = std::move(found->second.blocks);
  pins_.erase(found);
  pinned_blocks_ -= blocks.size();
  return blocks;
}

std::vector<PinTable::Expired> PinTable::expire(TimePoint now) {
  std::vector<Expired> expired;
  for (auto it = pins_.begin(); it != pins_.end();) {
    if (it->second.expires > now) {
      ++it;
      continue;
    }
    pinned_blocks_ -= it->second.blocks.size();
    expired.push_back({it->first, std::move(it->second.blocks), it->second.ever_fetched});
    it = pins_.erase(it);
  }
  return expired;
}

}  // namespace baton::sim
