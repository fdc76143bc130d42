// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/log_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace baton::loadgen {
namespace {

// About 13 days: nothing runs that long, and the buckets stay few.
constexpr std::uint64_t kMost = std::uint64_t{1} << 40U;

}  // namespace

// Below 2^precision each value has a bucket of its own; from there on each doubling has as many.
std::size_t LogHistogram::index_of(std::uint64_t us) const {
  const unsigned width = static_cast<unsigned>(std::bit_width(us));
  if (width <= precision_) return us;
  const unsigned shift = width - precision_ - 1;
  const std::uint64_t octave = std::uint64_t{shift + 1} << precision_;
  return octave + ((us >> shift) - (std::uint64_t{1} << precision_));
}

std::uint64_t LogHistogram::floor_of(std::size_t index) const {
  const std::size_t octave = index >> precision_;
  if (octave == 0) return index;
  const std::uint64_t within = index & ((std::uint64_t{1} << precision_) - 1);
  return (within + (std::uint64_t{1} << precision_)) << (octave - 1);
}

void LogHistogram::add(std::chrono::nanoseconds duration) {
  const double exact = static_cast<double>(std::max<std::int64_t>(duration.count(), 0)) / 1000;
  const auto us = std::min(static_cast<std::uint64_t>(exact), kMost);
  const std::size_t index = index_of(us);
  if (counts_.size() <= index) counts_.resize(index + 1);
  ++counts_[index];
  least_us_ = count_ == 0 ? us : std::min(least_us_, us);
  most_us_ = std::max(most_us_, us);
  sum_us_ += exact;
  ++count_;
}

void LogHistogram::merge(const LogHistogram& other) {
  if (other.count_ == 0) return;
  if (counts_.size() < other.counts_.size()) counts_.resize(other.counts_.size());
  for (std::size_t i = 0; i < other.counts_.size(); ++i) counts_[i] += other.counts_[i];
  least_us_ = count_ == 0 ? other.least_us_ : std::min(least_us_, other.least_us_);
  most_us_ = std::max(most_us_, other.most_us_);
  sum_us_ += other.sum_us_;
  count_ += other.count_;
}

double LogHistogram::quantile_ms(double quantile) const {
  if (count_ == 0) return 0;
  const auto rank = static_cast<std::uint64_t>(std::ceil(quantile * static_cast<double>(count_)));
  const std::uint64_t wanted = std::clamp<std::uint64_t>(rank, 1, count_);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen < wanted) continue;
    const double middle = static_cast<double>(floor_of(i) + floor_of(i + 1) - 1) / 2;
    return std::clamp(middle, static_cast<double>(least_us_), static_cast<double>(most_us_)) / 1000;
  }
  return most_ms();
}

std::vector<LogHistogram::Bucket> LogHistogram::buckets() const {
  std::vector<Bucket> filled;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] > 0) filled.push_back({static_cast<double>(floor_of(i + 1)) / 1000, counts_[i]});
  }
  return filled;
}

}  // namespace baton::loadgen
