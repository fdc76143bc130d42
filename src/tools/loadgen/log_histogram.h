// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace baton::loadgen {

// Role. Durations by microsecond, in buckets that grow with them: memory depends on the range and
//   the precision, never on how many there were.
// Confinement. One thread.
// Invariants. A quantile is off by at most one part in 2^precision; count, sum, least and most are
//   exact.
class LogHistogram {
 public:
  // `precision`: 2^precision buckets for each doubling.
  explicit LogHistogram(unsigned precision = 7) : precision_(precision) {}

  void add(std::chrono::nanoseconds duration);
  // Requires: the same precision.
  void merge(const LogHistogram& other);

  std::uint64_t count() const { return count_; }
  double mean_ms() const { return count_ == 0 ? 0 : sum_us_ / static_cast<double>(count_) / 1000; }
  double least_ms() const { return static_cast<double>(least_us_) / 1000; }
  double most_ms() const { return static_cast<double>(most_us_) / 1000; }
  // The duration that a share of `quantile` does not exceed; 0 where there is none.
  double quantile_ms(double quantile) const;

  struct Bucket {
    double below_ms;
    std::uint64_t count;
  };
  // Those that are not empty, ascending.
  std::vector<Bucket> buckets() const;

 private:
  std::size_t index_of(std::uint64_t us) const;
  std::uint64_t floor_of(std::size_t index) const;

  unsigned precision_;
  std::vector<std::uint64_t> counts_;  // as far as the largest value seen
  std::uint64_t count_ = 0;
  double sum_us_ = 0;
  std::uint64_t least_us_ = 0;
  std::uint64_t most_us_ = 0;
};

}  // namespace baton::loadgen
