// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace baton::sim {

// Role. One histogram as engines publish it, with the number of values up to each bound.
// Confinement. One thread.
// Lifetime. Its bounds are constants.
class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds), counts_(bounds.size()) {}

  void observe(double value) {
    const auto bucket = std::ranges::lower_bound(bounds_, value);
    if (bucket != bounds_.end()) ++counts_[static_cast<std::size_t>(bucket - bounds_.begin())];
    sum_ += value;
    ++count_;
  }

  std::span<const double> bounds() const { return bounds_; }
  // Count of each bucket alone.
  std::span<const std::uint64_t> counts() const { return counts_; }
  double sum() const { return sum_; }
  std::uint64_t count() const { return count_; }

 private:
  std::span<const double> bounds_;
  std::vector<std::uint64_t> counts_;
  double sum_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace baton::sim
