// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/locks/mutex.h"

#include <memory>
#include <utility>

namespace baton {

// Role. A value with few writers and many readers: a reader keeps the version it saw.
// Confinement. Any thread; the lock is held to copy a pointer. (Not std::atomic<std::shared_ptr>:
//   libstdc++ 12's locks in a way ThreadSanitizer takes for a race.)
template <class T>
class Published {
 public:
  Published() : value_(std::make_shared<const T>()) {}

  std::shared_ptr<const T> get() const {
    const locks::Lock lock(mutex_);
    return value_;
  }
  void set(T next) {
    auto fresh = std::make_shared<const T>(std::move(next));
    {
      const locks::Lock lock(mutex_);
      value_.swap(fresh);
    }  // what was there may end here, outside the lock
  }

 private:
  mutable locks::Mutex mutex_;
  std::shared_ptr<const T> value_ GUARDED_BY(mutex_);
};

}  // namespace baton
