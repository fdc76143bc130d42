// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/locks/mutex.h"
#include "scheduling/policy/prefill_backlog.h"

#include <boost/unordered/unordered_flat_map.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>

namespace baton::scheduling {

// Role. How often prompts with the same prefix come. A prefix is known by the hash of its last
//   block, which stands for all before it.
// Confinement. Any thread; one lock, held for a look-up.
// Invariants. Bounded: at the limit the prefix that has not come for longest is forgotten.
class Popularity {
 public:
  // An arrival of this age counts for a little more than a third.
  static constexpr std::chrono::seconds kMemory{10};
  // A younger prefix counts as this old: two that come at once are no flood.
  static constexpr std::chrono::seconds kYoung{2};

  explicit Popularity(std::size_t most = 16'384) : most_(most) {}

  // A prompt that begins so has come.
  void came(std::uint64_t beginning, Time now);
  // As seen by one more arrival now; 0: it is the first.
  double per_second(std::uint64_t beginning, Time now) const;
  std::size_t size() const;

 private:
  struct Known {
    std::uint64_t beginning = 0;
    double count = 0;  // of those that came, the older the less, as of `latest`
    Time first;
    Time latest;

    double faded(Time now) const;
  };

  const std::size_t most_;
  mutable locks::Mutex mutex_;
  std::list<Known> known_ GUARDED_BY(mutex_);  // the latest first
  boost::unordered_flat_map<std::uint64_t, std::list<Known>::iterator> places_ GUARDED_BY(mutex_);
};

}  // namespace baton::scheduling
