// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/coalescing_table.h"

#include <algorithm>
#include <utility>

namespace baton::scheduling {

// The block by which a request finds its leader: the leader computes all before it, or they are
// being computed too. None if too little of the prompt is new.
std::optional<std::size_t> CoalescingTable::decisive_block(const Chain& chain) const {
  if (tokens_ == 0 || chain.block_tokens == 0) return std::nullopt;
  const std::size_t enough = (tokens_ + chain.block_tokens - 1) / chain.block_tokens;
  if (chain.cached > chain.hashes.size() || chain.hashes.size() - chain.cached < enough)
    return std::nullopt;
  return chain.cached + enough - 1;
}

std::optional<Leader> CoalescingTable::find(const Chain& chain) const {
  const auto block = decisive_block(chain);
  if (!block) return std::nullopt;
  const auto found = leader_of_.find(chain.hashes[*block]);
  return found == leader_of_.end() ? std::nullopt : std::optional(found->second);
}

std::expected<Leader, Leader> CoalescingTable::lead(const Chain& chain,
                                                    std::shared_ptr<FollowerGroup> group) {
  // Blocks before the first decide for no prompt, as long as caches only gain.
  const auto first = decisive_block(chain);
  if (!first) return Leader{0};
  if (const auto other = find(chain)) return std::unexpected(*other);
  Named& named = leaders_[++last_];
  if (group && group->led_by == 0) {
    group->led_by = last_;
    named.group = std::move(group);
  }
  const std::size_t end = std::min(chain.hashes.size(), *first + kMostOfOne);
  for (std::size_t i = *first; i < end && leader_of_.size() < kMost; ++i) {
    if (leader_of_.emplace(chain.hashes[i], last_).second) named.hashes.push_back(chain.hashes[i]);
  }
  return last_;
}

std::shared_ptr<FollowerGroup> CoalescingTable::follow(Leader leader) {
  auto& group = leaders_.at(leader).group;
  if (!group) group = std::make_shared<FollowerGroup>(leader);
  return group;
}

bool CoalescingTable::followed(Leader leader) const {
  const auto found = leaders_.find(leader);
  return found != leaders_.end() && found->second.group;
}

void CoalescingTable::finish(Leader leader, End end) {
  const auto ended = leaders_.extract(leader);
  if (!ended) return;
  if (const auto& group = ended.mapped().group) {
    group->led_by = 0;
    group->succeeded = end == End::Succeeded;
  }
  for (const std::uint64_t hash : ended.mapped().hashes) leader_of_.erase(hash);
  // clear() would keep their buckets.
  if (leader_of_.empty()) leader_of_ = decltype(leader_of_)();
  if (leaders_.empty()) leaders_ = decltype(leaders_)();
}

}  // namespace baton::scheduling
