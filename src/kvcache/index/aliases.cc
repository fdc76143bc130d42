// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/aliases.h"

#include <bit>

namespace baton::kvcache {
namespace {

template <class Do>
void for_tiers(std::uint32_t tiers, Do action) {
  for (; tiers != 0; tiers &= tiers - 1) action(static_cast<std::size_t>(std::countr_zero(tiers)));
}

}  // namespace

void Aliases::add(EngineHash name, BlockPlace block, std::uint32_t tiers, std::uint32_t held) {
  const auto [found, fresh] = blocks_.try_emplace(block);
  Block& entry = found->second;
  if (fresh) {
    entry.names = 1;
    entry.first_tiers = held;
    for_tiers(held, [&](std::size_t tier) { ++entry.names_in[tier]; });
  }
  ++entry.names;
  tiers_[name] = tiers;
  for_tiers(tiers, [&](std::size_t tier) { ++entry.names_in[tier]; });
}

std::uint32_t Aliases::tiers(EngineHash name, BlockPlace block) const {
  const auto found = tiers_.find(name);
  return found != tiers_.end() ? found->second : blocks_.at(block).first_tiers;
}

void Aliases::extend(EngineHash name, BlockPlace block, std::uint32_t tiers) {
  Block& entry = blocks_.at(block);
  const auto found = tiers_.find(name);
  std::uint32_t& own = found != tiers_.end() ? found->second : entry.first_tiers;
  for_tiers(tiers & ~own, [&](std::size_t tier) { ++entry.names_in[tier]; });
  own |= tiers;
}

Aliases::Left Aliases::take(EngineHash name, BlockPlace block, std::uint32_t tiers) {
  const auto block_found = blocks_.find(block);
  Block& entry = block_found->second;
  const auto found = tiers_.find(name);
  std::uint32_t& own = found != tiers_.end() ? found->second : entry.first_tiers;
  std::uint32_t lost = 0;
  for_tiers(tiers & own, [&](std::size_t tier) {
    if (--entry.names_in[tier] == 0) lost |= 1U << tier;
  });
  own &= ~tiers;
  const std::uint32_t left = own;
  if (left == 0) {
    if (found != tiers_.end()) tiers_.erase(found);
    if (--entry.names == 0) blocks_.erase(block_found);
  }
  return {.name_tiers = left, .block_lost = lost};
}

void Aliases::clear() {
  blocks_ = decltype(blocks_)();
  tiers_ = decltype(tiers_)();
}

}  // namespace baton::kvcache
