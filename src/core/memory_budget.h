// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/error.h"

#include <atomic>
#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

namespace baton {

// Role. The memory that request bodies, data made from them, and whole answers may take in the
//   process together.
// Confinement. Any thread.
// Lifetime. Outlives its shares.
// Invariants. The shares together never have more than the limit. A share that does not fit is
//   refused at once: there is no waiting, so two half-read bodies cannot wait for each other.
//   Nothing up to kUncounted bytes is counted, so short requests touch no shared memory here and
//   are never refused.
class MemoryBudget {
 public:
  // Uncounted bytes of one body or answer.
  static constexpr std::size_t kUncounted = std::size_t{64} * 1024;
  // Peak memory of checking and reading a body, itself included, in multiples of its size. A list
  // of token ids, or many brackets, takes that much.
  static constexpr std::size_t kToRead = 5;

  // Called when much was given back since the last call or the last peak. Any thread.
  using Ebb = std::function<void()>;

  // A limit of 0: there is none.
  explicit MemoryBudget(std::size_t limit, Ebb ebb = {});
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  std::size_t limit() const { return limit_; }
  std::size_t used() const { return used_.load(std::memory_order_relaxed); }
  // Whether so much fits now.
  bool has_room(std::size_t bytes) const;
  // The largest body that can be read where there is nothing else.
  std::size_t largest_body() const { return most_ / kToRead; }

 private:
  friend class MemoryShare;
  bool take(std::size_t bytes);
  void give_back(std::size_t bytes);

  std::size_t limit_;
  std::size_t most_;
  Ebb ebb_;
  std::atomic<std::size_t> used_{0};
  std::atomic<std::size_t> peak_{0};  // of used_, since the last ebb
};

// Role. The share of one request or answer in a budget.
// Confinement. One thread at a time.
// Invariants. Gives everything back when it ends.
class MemoryShare {
 public:
  MemoryShare() = default;  // of no budget: everything fits
  explicit MemoryShare(MemoryBudget* budget) : budget_(budget) {}
  MemoryShare(MemoryShare&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), held_(std::exchange(other.held_, 0)) {}
  MemoryShare& operator=(MemoryShare&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(held_, other.held_);
    return *this;
  }
  ~MemoryShare() { shrink(0); }

  // Raises the share to cover `bytes`; false if that does not fit: the share is then unchanged.
  bool cover(std::size_t bytes) {
    return bytes <= MemoryBudget::kUncounted || bytes <= held_ || grow(bytes);
  }
  // The same for work that takes `factor` times the memory of a text. Short texts are not counted.
  bool cover_work(std::size_t text, std::size_t factor) {
    return text <= MemoryBudget::kUncounted || cover(text * factor);
  }
  // Lowers the share to at most `bytes`.
  void shrink(std::size_t bytes);
  std::size_t held() const { return held_; }

 private:
  bool grow(std::size_t bytes);

  MemoryBudget* budget_ = nullptr;
  std::size_t held_ = 0;
};

// The error if there is no room for `what`: a 503 that names no worker.
Error no_memory_for(std::string_view what);

}  // namespace baton
