// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "admission/followers.h"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>

namespace baton::admission {

using boost::asio::awaitable;
using Standing = FollowTable::Standing;

Leading& Leading::operator=(Leading&& other) noexcept {
  Leading ended(std::move(*this));
  followers_ = std::move(other.followers_);
  member_ = other.member_;
  return *this;
}

Leading::~Leading() {
  if (followers_) followers_->finish(member_, FollowTable::End::Failed);
}

void Leading::done() {
  if (const auto followers = std::move(followers_))
    followers->finish(member_, FollowTable::End::Succeeded);
}

// A follower's place, for as long as its coroutine waits; and the lead that it may be given.
class Followers::Place {
 public:
  Place(Followers& followers, Member member) : followers_(followers), member_(member) {}
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    if (!taken_) followers_.let_go(member_);
  }
  // What became of it is somebody else's now.
  void take() { taken_ = true; }

 private:
  Followers& followers_;
  Member member_;
  bool taken_ = false;
};

Followers::Followers(std::uint64_t tokens) : table_(tokens) {}
Followers::~Followers() = default;

awaitable<Result<Joined>> Followers::join(Chain chain, Clock::time_point deadline,
                                          Cancellation& cancellation) {
  const auto alive = shared_from_this();
  const auto [member, waiter] = enter(std::move(chain), co_await boost::asio::this_coro::executor);
  Joined joined;
  if (!waiter) {
    if (member != 0) joined.leading = Leading(alive, member);
    co_return joined;
  }
  const Clock::time_point begin = Clock::now();
  Place place(*this, member);
  co_await waiter->sleep(std::min(deadline, begin + kLongest), cancellation);
  if (cancellation.requested()) co_return fail(cancellation.reason());
  joined.followed = true;
  joined.waited = Clock::now() - begin;
  if (standing(member) == Standing::Leads) {
    place.take();
    joined.leading = Leading(alive, member);
  }
  co_return joined;
}

std::pair<Member, std::shared_ptr<Waiter>> Followers::enter(Chain chain,
                                                            boost::asio::any_io_executor home) {
  const std::scoped_lock lock(mutex_);
  const Member member = table_.join(std::move(chain));
  std::shared_ptr<Waiter> waiter;
  if (table_.standing(member) == Standing::Follows) {
    waiter = std::make_shared<Waiter>(std::move(home));
    waiters_.emplace(member, waiter);
  }
  return {member, std::move(waiter)};
}

Leading Followers::lead(const Chain& chain) {
  const std::scoped_lock lock(mutex_);
  const Member member = table_.lead(chain);
  return member == 0 ? Leading() : Leading(shared_from_this(), member);
}

void Followers::finish(Member member, FollowTable::End end_of_it) {
  const std::scoped_lock lock(mutex_);
  end(member, end_of_it);
}

void Followers::end(Member member, FollowTable::End end_of_it) {
  const FollowTable::Moves moves = table_.finish(member, end_of_it);
  for (const auto* woken : {&moves.free, &moves.promoted}) {
    for (const Member each : *woken) {
      const auto waiter = waiters_.extract(each);
      // Under the lock: who waits cannot leave, nor its executor end, before this is on its way.
      boost::asio::post(waiter.mapped()->home(), [ringing = waiter.mapped()] { ringing->ring(); });
    }
  }
  if (waiters_.empty()) waiters_ = decltype(waiters_)();  // clear() would keep its buckets
}

Standing Followers::standing(Member member) const {
  const std::scoped_lock lock(mutex_);
  return table_.standing(member);
}

void Followers::let_go(Member member) {
  const std::scoped_lock lock(mutex_);
  table_.leave(member);
  waiters_.erase(member);
  end(member, FollowTable::End::Failed);  // where it was given the lead and is not there to take it
}

std::size_t Followers::waiting() const {
  const std::scoped_lock lock(mutex_);
  return table_.following();
}

std::size_t Followers::blocks() const {
  const std::scoped_lock lock(mutex_);
  return table_.blocks();
}

}  // namespace baton::admission
