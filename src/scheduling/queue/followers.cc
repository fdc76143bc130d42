// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/followers.h"

#include <fmt/format.h>

namespace baton::scheduling {

Leading& Leading::operator=(Leading&& other) noexcept {
  Leading ended(std::move(*this));
  followers_ = std::move(other.followers_);
  leader_ = other.leader_;
  return *this;
}

Leading::~Leading() {
  if (followers_) followers_->finish(leader_, FollowTable::End::Failed);
}

void Leading::done() {
  if (const auto followers = std::move(followers_))
    followers->finish(leader_, FollowTable::End::Succeeded);
}

void Leading::counted() const {
  if (followers_) followers_->counted(leader_);
}

Awaited Following::awaits() const {
  return {.what = fmt::format("leader {}", pack->first), .surely = true};
}

Followers::Followers(std::uint64_t tokens, std::function<void()> changed)
    : table_(tokens), changed_(std::move(changed)) {}
Followers::~Followers() = default;

std::optional<Following> Followers::find(const Chain& chain) {
  const std::scoped_lock lock(mutex_);
  const auto leader = table_.find(chain);
  return leader ? std::optional(follow(*leader)) : std::nullopt;
}

std::expected<Leading, Following> Followers::lead(const Chain& chain,
                                                  const std::optional<Following>& before) {
  const std::scoped_lock lock(mutex_);
  const auto led = table_.lead(chain, before && !before->over() ? before->pack : nullptr);
  if (!led) return std::unexpected(follow(led.error()));
  return *led == 0 ? Leading() : Leading(shared_from_this(), *led);
}

Following Followers::follow(Leader leader) { return {.pack = table_.follow(leader)}; }

void Followers::counted(Leader leader) {
  bool followed = false;
  {
    const std::scoped_lock lock(mutex_);
    followed = table_.followed(leader);
  }
  if (followed && changed_) changed_();
}

void Followers::finish(Leader leader, FollowTable::End end) {
  bool followed = false;
  {
    const std::scoped_lock lock(mutex_);
    followed = table_.followed(leader);
    table_.finish(leader, end);
  }
  // Not under the lock: whoever hears of it may come here.
  if (followed && changed_) changed_();
}

std::size_t Followers::blocks() const {
  const std::scoped_lock lock(mutex_);
  return table_.blocks();
}

}  // namespace baton::scheduling
