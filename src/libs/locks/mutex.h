// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/locks/annotations.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

namespace baton::locks {

// Role. std::mutex, known to the thread safety analysis. libstdc++'s own has no attributes.
// Confinement. Any thread.
class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() ACQUIRE() { mutex_.lock(); }
  bool try_lock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }

 private:
  friend class ConditionVariable;
  std::mutex mutex_;
};

// Role. std::shared_mutex, likewise.
// Confinement. Any thread.
class CAPABILITY("shared_mutex") SharedMutex {
 public:
  SharedMutex() = default;
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }
  void lock_shared() ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void unlock_shared() RELEASE_SHARED() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

// Role. Holds a lock of any kind for as long as it lives, like std::lock_guard.
// Confinement. One thread.
// Lifetime. The lock outlives it.
template <class Lockable>
class SCOPED_CAPABILITY Lock {
 public:
  explicit Lock(Lockable& lockable) ACQUIRE(lockable) : lockable_(lockable) { lockable.lock(); }
  // Requires: the caller has locked it. The end unlocks it.
  Lock(Lockable& lockable, std::adopt_lock_t) REQUIRES(lockable) : lockable_(lockable) {}
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() RELEASE() { lockable_.unlock(); }

 private:
  Lockable& lockable_;
};

// Role. The same, for readers of what a SharedMutex guards.
// Confinement. One thread.
// Lifetime. The mutex outlives it.
class SCOPED_CAPABILITY SharedLock {
 public:
  explicit SharedLock(SharedMutex& mutex) ACQUIRE_SHARED(mutex) : mutex_(mutex) {
    mutex.lock_shared();
  }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;
  ~SharedLock() RELEASE_GENERIC() { mutex_.unlock_shared(); }

 private:
  SharedMutex& mutex_;
};

// Role. std::condition_variable for a Mutex. Waits take no predicate, because the analysis does not
//   know that a lambda runs with the lock held: callers loop.
// Confinement. Any thread.
class ConditionVariable {
 public:
  // May return without a notification. The lock is held again then.
  void wait(Mutex& mutex) REQUIRES(mutex) {
    std::unique_lock held(mutex.mutex_, std::adopt_lock);
    variable_.wait(held);
    held.release();
  }
  // The same, until a moment at the latest.
  std::cv_status wait_until(Mutex& mutex, std::chrono::steady_clock::time_point end)
      REQUIRES(mutex) {
    std::unique_lock held(mutex.mutex_, std::adopt_lock);
    const std::cv_status status = variable_.wait_until(held, end);
    held.release();
    return status;
  }
  void notify_one() { variable_.notify_one(); }
  void notify_all() { variable_.notify_all(); }

 private:
  std::condition_variable variable_;
};

}  // namespace baton::locks
