// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/prefill_coalescer.h"

#include <fmt/format.h>

namespace baton::scheduling {

LeaderLease& LeaderLease::operator=(LeaderLease&& other) noexcept {
  LeaderLease ended(std::move(*this));
  coalescer_ = std::move(other.coalescer_);
  leader_ = other.leader_;
  return *this;
}

LeaderLease::~LeaderLease() {
  if (coalescer_) coalescer_->finish(leader_, CoalescingTable::End::Failed);
}

void LeaderLease::done() {
  if (const auto followers = std::move(coalescer_))
    followers->finish(leader_, CoalescingTable::End::Succeeded);
}

void LeaderLease::counted() const {
  if (coalescer_) coalescer_->counted(leader_);
}

WaitKey FollowedPrefill::awaits() const {
  return {.what = fmt::format("leader {}", group->first), .surely = true};
}

PrefillCoalescer::PrefillCoalescer(std::uint64_t tokens, std::function<void()> changed)
    : table_(tokens), changed_(std::move(changed)) {}
PrefillCoalescer::~PrefillCoalescer() = default;

std::optional<FollowedPrefill> PrefillCoalescer::find(const Chain& chain) {
  const locks::Lock lock(mutex_);
  const auto leader = table_.find(chain);
  return leader ? std::optional(follow(*leader)) : std::nullopt;
}

std::expected<LeaderLease, FollowedPrefill> PrefillCoalescer::lead(
    const Chain& chain, const std::optional<FollowedPrefill>& before) {
  const locks::Lock lock(mutex_);
  const auto led = table_.lead(chain, before && !before->over() ? before->group : nullptr);
  if (!led) return std::unexpected(follow(led.error()));
  return *led == 0 ? LeaderLease() : LeaderLease(shared_from_this(), *led);
}

FollowedPrefill PrefillCoalescer::follow(Leader leader) { return {.group = table_.follow(leader)}; }

void PrefillCoalescer::counted(Leader leader) {
  bool followed = false;
  {
    const locks::Lock lock(mutex_);
    followed = table_.followed(leader);
  }
  if (followed && changed_) changed_();
}

void PrefillCoalescer::finish(Leader leader, CoalescingTable::End end) {
  bool followed = false;
  {
    const locks::Lock lock(mutex_);
    followed = table_.followed(leader);
    table_.finish(leader, end);
  }
  // Not under the lock: the callee may call back here.
  if (followed && changed_) changed_();
}

std::size_t PrefillCoalescer::blocks() const {
  const locks::Lock lock(mutex_);
  return table_.blocks();
}

}  // namespace baton::scheduling
