// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "admission/follow_table.h"

#include <algorithm>
#include <utility>

namespace baton::admission {

// The block by which a request finds its leader: who computes it computes all before it, or they are
// being computed too. None where the prompt has too little that is new.
std::optional<std::size_t> FollowTable::decisive_block(const Chain& chain) const {
  if (tokens_ == 0 || chain.block_tokens == 0) return std::nullopt;
  const std::size_t enough = (tokens_ + chain.block_tokens - 1) / chain.block_tokens;
  if (chain.cached > chain.hashes.size() || chain.hashes.size() - chain.cached < enough)
    return std::nullopt;
  return chain.cached + enough - 1;
}

std::optional<Member> FollowTable::leader_for(const Chain& chain) const {
  const auto block = decisive_block(chain);
  if (!block) return std::nullopt;
  const auto found = leader_of_.find(chain.hashes[*block]);
  return found == leader_of_.end() ? std::nullopt : std::optional(found->second);
}

Member FollowTable::join(Chain chain) {
  const auto leader = leader_for(chain);
  if (!leader) return lead(chain);
  follow(++last_, *leader, std::move(chain));
  return last_;
}

Member FollowTable::lead(const Chain& chain) {
  if (!decisive_block(chain)) return 0;
  announce(++last_, chain);
  return last_;
}

void FollowTable::announce(Member member, const Chain& chain) {
  Leader& leader = leaders_[member];
  // Blocks before the first are nobody's decisive one as long as caches only gain.
  const std::size_t first = *decisive_block(chain);
  const std::size_t end = std::min(chain.hashes.size(), first + kMostOfOne);
  for (std::size_t i = first; i < end && leader_of_.size() < kMost; ++i) {
    if (leader_of_.emplace(chain.hashes[i], member).second)
      leader.hashes.push_back(chain.hashes[i]);
  }
}

void FollowTable::follow(Member member, Member leader, Chain chain) {
  auto& followers = leaders_.at(leader).followers;
  following_.emplace(member, Follower{.chain = std::move(chain),
                                      .leader = leader,
                                      .place = followers.insert(followers.end(), member)});
}

FollowTable::Moves FollowTable::finish(Member member, End end) {
  Moves moves;
  const auto ended = leaders_.extract(member);
  if (!ended) return moves;
  for (const std::uint64_t hash : ended.mapped().hashes) leader_of_.erase(hash);
  for (const Member follower : ended.mapped().followers) {
    auto waiting = following_.extract(follower);
    if (end == End::Succeeded) {
      moves.free.push_back(follower);
      continue;
    }
    Chain& chain = waiting.mapped().chain;
    if (const auto next = leader_for(chain)) {
      follow(follower, *next, std::move(chain));
    } else {
      announce(follower, chain);
      moves.promoted.push_back(follower);
    }
  }
  // clear() would keep their buckets.
  if (leader_of_.empty()) leader_of_ = decltype(leader_of_)();
  if (leaders_.empty()) leaders_ = decltype(leaders_)();
  if (following_.empty()) following_ = decltype(following_)();
  return moves;
}

void FollowTable::leave(Member member) {
  const auto left = following_.extract(member);
  if (left) leaders_.at(left.mapped().leader).followers.erase(left.mapped().place);
}

FollowTable::Standing FollowTable::standing(Member member) const {
  if (leaders_.contains(member)) return Standing::Leads;
  return following_.contains(member) ? Standing::Follows : Standing::Free;
}

}  // namespace baton::admission
