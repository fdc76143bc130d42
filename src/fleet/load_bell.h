// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

namespace baton::fleet {

// Whoever wants to know that some worker has less to do, or that one has come.
class LoadListener {
 public:
  virtual ~LoadListener() = default;
  // On any thread, often: to be cheap.
  virtual void load_fell() = 0;
};

// Role. Rings for the one listener of a pool.
// Confinement. Any thread.
// Lifetime. Shared by the pool and its bookings.
class LoadBell {
 public:
  void ring() const {
    if (LoadListener* const listener = ringing_.load(std::memory_order_acquire))
      listener->load_fell();
  }
  // The pool's listener, made by `make` where it has none yet; it stays as long as the bell.
  template <class Make>
  LoadListener& listener(Make make) {
    const std::lock_guard lock(mutex_);
    if (!listener_) {
      listener_ = make();
      ringing_.store(listener_.get(), std::memory_order_release);
    }
    return *listener_;
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<LoadListener> listener_;  // under mutex_; once made it stays
  std::atomic<LoadListener*> ringing_{nullptr};
};

}  // namespace baton::fleet
