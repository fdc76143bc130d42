// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/work_history.h"

#include <algorithm>

namespace baton::fleet {
namespace {

// No single request counts for more.
constexpr double kMostSeconds = 24 * 3600;

// NaN is 0, too.
double sound_seconds(double seconds) { return seconds > 0 ? std::min(seconds, kMostSeconds) : 0; }

}  // namespace

std::int64_t WorkHistory::number_of(Time now) const {
  return std::max<std::int64_t>(0, (now - begun_) / kBucket);
}

WorkHistory::Bucket& WorkHistory::bucket_at(Time now) {
  constexpr auto kCount = static_cast<std::int64_t>(kBuckets);
  const std::int64_t number = number_of(now);
  // Those in between had nothing; of more than there are, all are void.
  for (std::int64_t next = std::max(newest_ + 1, number - kCount + 1); next <= number; ++next)
    ring_[static_cast<std::size_t>(next % kCount)] = {};
  newest_ = std::max(newest_, number);
  const std::int64_t oldest = std::max<std::int64_t>(0, newest_ - kCount + 1);
  return ring_[static_cast<std::size_t>(std::max(number, oldest) % kCount)];
}

void WorkHistory::came(double prefill_seconds, Time now) {
  const locks::Lock lock(mutex_);
  Bucket& bucket = bucket_at(now);
  ++bucket.requests;
  bucket.prefill_seconds += sound_seconds(prefill_seconds);
}

void WorkHistory::decoded(double seconds, Time now) {
  const locks::Lock lock(mutex_);
  Bucket& bucket = bucket_at(now);
  ++bucket.answers;
  bucket.decode_seconds += sound_seconds(seconds);
}

WorkHistory::Buckets WorkHistory::last_buckets(Time now) const {
  constexpr auto kCount = static_cast<std::int64_t>(kBuckets);
  Buckets last;
  const locks::Lock lock(mutex_);
  const std::int64_t end = std::max(newest_, number_of(now));
  const std::int64_t oldest = std::max<std::int64_t>({0, end - kCount + 1, newest_ - kCount + 1});
  for (std::int64_t number = oldest; number <= newest_; ++number) {
    last[static_cast<std::size_t>(number - (end - kCount + 1))] =
        ring_[static_cast<std::size_t>(number % kCount)];
  }
  return last;
}

WorkHistory::Summary WorkHistory::summary(Time now) const {
  constexpr double kPerSecond = 1.0 / static_cast<double>(kMinute.count());
  const Buckets buckets = last_buckets(now);
  Summary summary;
  summary.seconds = std::clamp<double>(std::chrono::duration<double>(now - begun_).count(), 0,
                                       static_cast<double>(std::chrono::seconds(kSpan).count()));
  double answers = 0;
  double decode_seconds = 0;
  for (std::size_t end = 0; end < kBuckets; ++end) {
    answers += static_cast<double>(buckets[end].answers);
    decode_seconds += buckets[end].decode_seconds;
    if (end + 1 < kInMinute) continue;
    double requests = 0;
    double prefill_seconds = 0;
    for (std::size_t i = end + 1 - kInMinute; i <= end; ++i) {
      requests += static_cast<double>(buckets[i].requests);
      prefill_seconds += buckets[i].prefill_seconds;
    }
    summary.requests_per_second = std::max(summary.requests_per_second, requests * kPerSecond);
    if (prefill_seconds * kPerSecond > summary.prefill_load) {
      summary.prefill_load = prefill_seconds * kPerSecond;
      summary.prefill_seconds = prefill_seconds / requests;
    }
  }
  if (answers > 0) summary.decode_seconds = decode_seconds / answers;
  return summary;
}

}  // namespace baton::fleet
