// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/locks/mutex.h"
#include "model/worker.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace baton::handoff {

// Role. Records the requests during which worker processes ended before the first token. A worker
//   that ends takes many requests with it, so one end only makes each of them suspect; a request
//   with several ends is held to be the cause. Clients repeat failed requests: copies of a request,
//   and its branches, are the same request.
// Confinement. Any thread; if nothing is suspect, a look-up is one atomic load.
// Invariants. A request that has got its first token is suspect no more. The record is bounded in
//   number and in time.
class Suspects {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  struct Request {
    std::uint64_t hash;
    bool operator==(const Request&) const = default;
  };

  // After so many ends of workers the request is offered to no other.
  static constexpr std::size_t kTooMany = 2;
  // How long an end is remembered: longer than clients repeat by themselves.
  static constexpr std::chrono::minutes kRemembered{2};

  // By the bytes that its client sent.
  static Request request_of(std::string_view body);

  bool none() const { return size_.load(std::memory_order_relaxed) == 0; }
  // How many workers have ended under copies of it.
  std::size_t ends(Request request, Time now) const;
  // A worker has ended under a leg that was sent to it at `sent`. Returns how many have by now: one
  // process ends once, however many legs were on it.
  std::size_t ended(Request request, model::WorkerId worker, Time sent, Time now);
  // It has been computed, and its worker lives.
  void clear(Request request);

 private:
  struct End {
    model::WorkerId worker;
    Time when;
  };
  static constexpr std::size_t kMost = 4096;
  void forget_old(Time now) REQUIRES(mutex_);

  mutable locks::Mutex mutex_;
  // By hash, the latest last.
  std::unordered_map<std::uint64_t, std::vector<End>> ends_ GUARDED_BY(mutex_);
  std::atomic<std::size_t> size_{0};
};

}  // namespace baton::handoff
