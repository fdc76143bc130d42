// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "core/memory_budget.h"

#include <chrono>
#include <limits>
#include <string>

namespace baton {
namespace {

// Shares grow in steps of this size, so that a body touches the budget once for each piece read.
constexpr std::size_t kStep = std::size_t{64} * 1024;
constexpr std::size_t kMuch = std::size_t{16} * 1024 * 1024;

std::size_t counted(std::size_t bytes) {
  return bytes <= MemoryBudget::kUncounted ? 0 : (bytes + kStep - 1) / kStep * kStep;
}

}  // namespace

// Half of all numbers is no limit, and room enough to round and to multiply.
MemoryBudget::MemoryBudget(std::size_t limit, Ebb ebb)
    : limit_(limit),
      most_(limit == 0 ? std::numeric_limits<std::size_t>::max() / 2 : limit),
      ebb_(std::move(ebb)) {}

bool MemoryBudget::has_room(std::size_t bytes) const {
  const std::size_t wanted = counted(bytes);
  return wanted == 0 || (wanted <= most_ && used() <= most_ - wanted);
}

bool MemoryBudget::take(std::size_t bytes) {
  std::size_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > most_ || used > most_ - bytes) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  used += bytes;
  std::size_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < used && !peak_.compare_exchange_weak(peak, used, std::memory_order_relaxed)) {
  }
  return true;
}

void MemoryBudget::give_back(std::size_t bytes) {
  const std::size_t used = used_.fetch_sub(bytes, std::memory_order_relaxed) - bytes;
  std::size_t peak = peak_.load(std::memory_order_relaxed);
  if (peak < used + kMuch) return;
  if (peak_.compare_exchange_strong(peak, used, std::memory_order_relaxed) && ebb_) ebb_();
}

bool MemoryShare::grow(std::size_t bytes) {
  if (!budget_) return true;
  const std::size_t wanted = counted(bytes);
  if (!budget_->take(wanted - held_)) return false;
  held_ = wanted;
  return true;
}

void MemoryShare::shrink(std::size_t bytes) {
  const std::size_t left = counted(bytes);
  if (left >= held_) return;
  budget_->give_back(held_ - left);
  held_ = left;
}

Error no_memory_for(std::string_view what) {
  return Error(Errc::MemoryExhausted,
               "the router has too little memory left for " + std::string(what))
      .with_retry_after(std::chrono::seconds(1))
      .with_limit(Limit::Memory);
}

}  // namespace baton
