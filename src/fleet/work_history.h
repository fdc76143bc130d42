// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/health.h"
#include "libs/locks/mutex.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace baton::fleet {

// Role. The work that came to the workers of one pool in the last five minutes, also what they
//   could not do.
// Confinement. Any thread; one lock, held for a few sums.
// Lifetime. Owned by its pool; outlives the requests that write to it.
// Invariants. Bounded: a fixed number of buckets. Time does not run backwards: work of a bucket
//   that is gone counts in the oldest one left. Every sum is finite, whatever the input.
class WorkHistory {
 public:
  static constexpr std::chrono::seconds kBucket{10};
  static constexpr std::chrono::seconds kMinute{60};
  static constexpr std::chrono::minutes kSpan{5};

  explicit WorkHistory(Time begun = Clock::now()) : begun_(begun) {}

  // A request came, whether it is served or refused. `prefill_seconds`: the time of its uncached
  // part on one prefill worker.
  void came(double prefill_seconds, Time now);
  // An answer has ended that kept a place of a decode worker that long.
  void decoded(double seconds, Time now);

  // The busiest minute of the last five. The minute that is not over counts with what it has so
  // far, so that more work shows soon and less work after five minutes.
  struct Summary {
    double seconds = 0;              // watched for so long, five minutes at most
    double requests_per_second = 0;  // in the minute with the most requests
    double prefill_load = 0;     // prefill seconds per second, in the minute with the most of it
    double prefill_seconds = 0;  // mean of the requests of that minute
    // Mean of the answers that ended in the five minutes; absent: none has.
    std::optional<double> decode_seconds;

    // Answers that are decoded at once (Little's law); absent: unknown.
    std::optional<double> streams() const {
      if (requests_per_second == 0) return 0;
      if (!decode_seconds) return std::nullopt;
      return requests_per_second * *decode_seconds;
    }
  };
  Summary summary(Time now) const;

 private:
  static constexpr auto kInMinute = static_cast<std::size_t>(kMinute / kBucket);
  // And the one that is being filled.
  static constexpr auto kBuckets = static_cast<std::size_t>(kSpan / kBucket) + 1;

  struct Bucket {
    std::uint64_t requests = 0;
    double prefill_seconds = 0;
    std::uint64_t answers = 0;
    double decode_seconds = 0;
  };
  using Buckets = std::array<Bucket, kBuckets>;

  std::int64_t number_of(Time now) const;
  // The oldest first, the last one is that of `now`.
  Buckets last_buckets(Time now) const;
  Bucket& bucket_at(Time now) REQUIRES(mutex_);

  const Time begun_;
  mutable locks::Mutex mutex_;
  Buckets ring_ GUARDED_BY(mutex_);  // bucket n is at n % kBuckets
  // Number of the latest bucket, counted from `begun_`.
  std::int64_t newest_ GUARDED_BY(mutex_) = 0;
};

}  // namespace baton::fleet
