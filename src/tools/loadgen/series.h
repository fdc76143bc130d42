// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/loadgen/log_histogram.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace baton::loadgen {

// Events in one second of a run, or in a few.
struct Moment {
  std::uint64_t sent = 0;
  std::uint64_t completed = 0;
  std::uint64_t refused = 0;
  std::uint64_t failed = 0;
  std::uint64_t output_tokens = 0;  // as they came; an event counts as one
  std::uint64_t prompt_tokens = 0;  // of answers that ended then
  std::uint64_t cached_tokens = 0;
  LogHistogram ttft{3};
  LogHistogram itl{3};

  void merge(const Moment& other);
};

// Role. A run by the second. For a long run, neighbouring seconds are merged in pairs.
// Confinement. One thread.
// Invariants. At most kMost moments; two series can be merged whatever their widths.
class Series {
 public:
  static constexpr std::size_t kMost = 3600;

  Moment& at(std::chrono::nanoseconds since_start);
  void merge(const Series& other);

  std::chrono::seconds width() const { return width_; }
  const std::vector<Moment>& moments() const { return moments_; }

 private:
  void halve();

  std::chrono::seconds width_{1};
  std::vector<Moment> moments_;
};

}  // namespace baton::loadgen
