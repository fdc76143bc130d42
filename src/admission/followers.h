// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "admission/follow_table.h"
#include "admission/waiter.h"
#include "core/cancellation.h"
#include "core/result.h"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace baton::admission {

class Followers;

// Role. Says that its holder computes the beginning of a prompt, so that others need not: until it is
//   done, or, where it goes without, has failed.
// Confinement. One thread at a time.
// Lifetime. Keeps its Followers alive.
class Leading {
 public:
  Leading() = default;
  Leading(Leading&& other) noexcept = default;
  Leading& operator=(Leading&& other) noexcept;
  ~Leading();

  // The blocks are in a worker's cache now: those who waited for them go on.
  void done();
  explicit operator bool() const { return followers_ != nullptr; }

 private:
  friend class Followers;
  Leading(std::shared_ptr<Followers> followers, Member member)
      : followers_(std::move(followers)), member_(member) {}

  std::shared_ptr<Followers> followers_;  // null: it leads nobody
  Member member_ = 0;
};

// How a request goes on.
struct Joined {
  Leading leading;        // none where it has followed, or has nothing that others could wait for
  bool followed = false;  // it has waited: what caches have must be looked up again
  std::chrono::steady_clock::duration waited{0};
};

// Role. Sees to it that of many requests with the same cold beginning one computes it and the rest
//   wait for that. For one model and namespace.
// Confinement. Any thread; who waits is woken on its own executor.
// Lifetime. Held by shared_ptr.
// Invariants. Nobody waits for one who waits for another's blocks, nor longer than he said. Where a
//   leader fails, the first of its followers takes its place and the others follow him, as far as
//   they have enough in common. Memory is bounded: what is not remembered is computed twice.
class Followers : public std::enable_shared_from_this<Followers> {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kLongest{30};

  // `tokens`: whoever has less in common with a leader does not wait for it; 0: nobody does.
  explicit Followers(std::uint64_t tokens);
  ~Followers();
  Followers(const Followers&) = delete;
  Followers& operator=(const Followers&) = delete;

  // Waits for the one who computes the beginning of this prompt now, if there is one; else this
  // request is the one, for the others. Waits until `deadline` and kLongest at most, and only for one
  // that succeeds. An error is why the request was cancelled.
  boost::asio::awaitable<Result<Joined>> join(Chain chain, Clock::time_point deadline,
                                              Cancellation& cancellation);
  // Says so without waiting: for one who has followed, of what is new to all now.
  Leading lead(const Chain& chain);

  std::size_t waiting() const;
  std::size_t blocks() const;

 private:
  friend class Leading;
  class Place;

  // A member, and where it sleeps if it follows.
  std::pair<Member, std::shared_ptr<Waiter>> enter(Chain chain, boost::asio::any_io_executor home);
  void finish(Member member, FollowTable::End end);
  FollowTable::Standing standing(Member member) const;
  void let_go(Member member);
  // Requires: mutex_ is held.
  void end(Member member, FollowTable::End end);

  mutable std::mutex mutex_;
  FollowTable table_;
  std::unordered_map<Member, std::shared_ptr<Waiter>> waiters_;  // of those who follow
};

}  // namespace baton::admission
