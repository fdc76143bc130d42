// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/locks/mutex.h"
#include "scheduling/policy/published_speed.h"
#include "scheduling/policy/rank_load.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace baton::scheduling {

// Role. Learns how many requests one rank may have at once so that the tokens of their streams come
//   no farther apart than the objective. The streams report their gaps, and how many requests ran.
// Confinement. Any thread; a lock for a few numbers, and readers of the limit take none.
// Lifetime. As long as the rank.
// Invariants. All streams of a rank share the engine's steps. So the median gap of the samples of a
//   short window is the engine's: a client that reads slowly delays its own tokens only, and must
//   not pull the limit down for the others. The limit grows only if the gap keeps the objective, or
//   if no stream has reported for long. It is never below 1.
class BatchLimit {
 public:
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
  // Minimum of one sample.
  static constexpr std::uint64_t kTokens = 16;

  // A sample of one stream: the average gap of kTokens or more recent tokens, and the number of
  // requests on the rank meanwhile.
  void observe(double requests, double gap_seconds, double target_seconds, Time now);
  // Requests that the rank may have at once; kUnlimited as long as nothing bounds it.
  std::int64_t most() const { return most_.load(std::memory_order_relaxed); }
  // Time has passed: a limit without samples for long loosens, so that one bad spell does not bind
  // a rank for ever.
  void forget(Time now);

 private:
  static constexpr double kNone = std::numeric_limits<double>::infinity();

  struct Sample {
    double requests = 0;
    double gap = 0;
  };

  void close_window(double target, Time now) REQUIRES(mutex_);
  double lowered(double requests, double gap, double target) REQUIRES(mutex_);
  double raised(double requests, double gap, double target) REQUIRES(mutex_);
  void set(double limit, Time now) REQUIRES(mutex_);
  void forget_until(Time now) REQUIRES(mutex_);

  std::atomic<std::int64_t> most_{kUnlimited};

  locks::Mutex mutex_;
  double limit_ GUARDED_BY(mutex_) = kNone;  // `most_`, in fractions of a request
  double broke_ GUARDED_BY(mutex_) = kNone;  // with so many requests the objective was last missed
  Time changed_ GUARDED_BY(mutex_) = Time::min();      // when `most_` last did
  Time heard_ GUARDED_BY(mutex_);                      // the end of the last window
  Time begun_ GUARDED_BY(mutex_);                      // of the window that is open
  std::size_t count_ GUARDED_BY(mutex_) = 0;           // of its samples
  std::array<Sample, 32> samples_ GUARDED_BY(mutex_);  // the latest of them, in a ring
};

// Role. Samples how far apart the tokens of one stream come, for the limit of its rank.
// Confinement. One thread at a time.
// Lifetime. The rank's limit and load outlive it.
class TokenGaps {
 public:
  TokenGaps(BatchLimit& limit, const RankLoad& load, double target_seconds)
      : limit_(limit), load_(load), target_(target_seconds) {}

  // Whether enough tokens of the answer have come to read the clock. (The first token starts it:
  // the time before it is no gap between tokens.)
  bool is_due(std::uint64_t tokens) const { return tokens >= due_; }
  // Whether the rank may have more requests now than before. Requires: is_due(tokens).
  bool sample(std::uint64_t tokens, Time now);

 private:
  BatchLimit& limit_;
  const RankLoad& load_;
  const double target_;
  std::uint64_t due_ = 1;
  std::uint64_t tokens_ = 0;   // at the last sample; 0: there was none
  Time since_;                 // when that was
  std::int64_t requests_ = 0;  // that ran then
};

}  // namespace baton::scheduling
