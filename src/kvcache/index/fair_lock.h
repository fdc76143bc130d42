// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/locks/annotations.h"

#include <atomic>
#include <cstdint>

namespace baton::kvcache {

// Role. A lock that is given in the order of asking, so that a reader waits for no more than the
//   holds in front of it, however busy the writers are.
// Confinement. Any thread.
class CAPABILITY("mutex") FairLock {
 public:
  void lock() ACQUIRE() {
    const std::uint32_t ticket = next_.fetch_add(1, std::memory_order_relaxed);
    std::uint32_t serving = serving_.load(std::memory_order_acquire);
    for (int spins = 0; serving != ticket && spins < kSpins; ++spins) {
      relax();
      serving = serving_.load(std::memory_order_acquire);
    }
    while (serving != ticket) {
      serving_.wait(serving, std::memory_order_acquire);
      serving = serving_.load(std::memory_order_acquire);
    }
  }

  void unlock() RELEASE() {
    // Sequentially consistent, which a release would not be: libstdc++ skips the notification if it
    // sees no sleeper, and before the store is visible a thread could still fall asleep unseen.
    serving_.store(serving_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
    serving_.notify_all();
  }

 private:
  // Tells the core that it waits.
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  // Longer than a hold takes, shorter than a thread's time slice.
  static constexpr int kSpins = 200;

  std::atomic<std::uint32_t> next_{0};
  std::atomic<std::uint32_t> serving_{0};
};

}  // namespace baton::kvcache
