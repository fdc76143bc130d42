// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "scheduling/queue/class_queue.h"
#include "scheduling/queue/follow_table.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace baton::scheduling {

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
  // What caches are believed to have includes its blocks now, perhaps: whoever waits for them looks.
  void counted() const;
  explicit operator bool() const { return followers_ != nullptr; }

 private:
  friend class Followers;
  Leading(std::shared_ptr<Followers> followers, Leader leader)
      : followers_(std::move(followers)), leader_(leader) {}

  std::shared_ptr<Followers> followers_;  // null: it leads nobody
  Leader leader_ = 0;
};

// What a request waits for that follows another one.
struct Following {
  std::shared_ptr<Pack> pack;
  Awaited awaits() const;
  // There is nothing to wait for any more, whatever caches are believed to have.
  bool over() const { return pack->succeeded; }
};

// Role. Sees to it that of many requests with the same cold beginning one computes it and the rest
//   wait for that. For one model and namespace. They wait at the gate, in a lane of their leader's.
// Confinement. Any thread.
// Lifetime. Held by shared_ptr.
// Invariants. Who leads has been booked. Where a leader fails, the first of its followers to be booked
//   takes its place and the others follow it, as far as they have enough in common. Memory is
//   bounded: what is not remembered is computed twice.
class Followers : public std::enable_shared_from_this<Followers> {
 public:
  // Nobody follows longer than this.
  static constexpr std::chrono::seconds kLongest{30};

  // `tokens`: whoever has less in common with a leader does not wait for it; 0: nobody does.
  // `changed` is called when those who follow are to be tried again.
  explicit Followers(std::uint64_t tokens, std::function<void()> changed = {});
  ~Followers();
  Followers(const Followers&) = delete;
  Followers& operator=(const Followers&) = delete;

  // For a request that is to follow the one who computes its beginning now, if there is one.
  std::optional<Following> find(const Chain& chain);
  // For one who has been booked: it leads, unless it has too little that others could wait for. Or
  // whom it is to follow instead, where another one was booked for the same in this moment. `before`:
  // whom it followed, if it did: those who still do follow it now.
  std::expected<Leading, Following> lead(const Chain& chain,
                                         const std::optional<Following>& before = {});

  std::size_t blocks() const;

 private:
  friend class Leading;

  void counted(Leader leader);
  void finish(Leader leader, FollowTable::End end);
  // Requires: mutex_ is held.
  Following follow(Leader leader);

  mutable std::mutex mutex_;
  FollowTable table_;
  const std::function<void()> changed_;
};

}  // namespace baton::scheduling
