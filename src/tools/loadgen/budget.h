// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>

namespace baton::loadgen {

// Role. The remaining requests of a run and those in flight, shared by its threads.
// Confinement. Any thread.
// Invariants. No number is given out twice, and no more than the limit.
class Budget {
 public:
  // nullopt: no limit; the run's duration is one.
  explicit Budget(std::optional<std::uint64_t> requests)
      : limit_(requests.value_or(std::numeric_limits<std::uint64_t>::max())) {}

  // The number of the request; nullopt where all were taken.
  std::optional<std::uint64_t> take_request() {
    std::uint64_t number = requests_.load(std::memory_order_relaxed);
    while (number < limit_) {
      if (requests_.compare_exchange_weak(number, number + 1, std::memory_order_relaxed))
        return number;
    }
    return std::nullopt;
  }
  bool spent() const { return requests_.load(std::memory_order_relaxed) >= limit_; }
  std::uint64_t take_conversation() {
    return conversations_.fetch_add(1, std::memory_order_relaxed);
  }

  void begin() { in_flight_.fetch_add(1, std::memory_order_relaxed); }
  void end() { in_flight_.fetch_sub(1, std::memory_order_relaxed); }
  std::uint64_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }

 private:
  const std::uint64_t limit_;
  std::atomic<std::uint64_t> requests_{0};
  std::atomic<std::uint64_t> conversations_{0};
  std::atomic<std::uint64_t> in_flight_{0};
};

}  // namespace baton::loadgen
