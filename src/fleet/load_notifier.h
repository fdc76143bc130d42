// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/published.h"
#include "libs/locks/mutex.h"

#include <atomic>
#include <memory>
#include <vector>

namespace baton::fleet {

// Is notified when some worker has less load, or one has joined.
class LoadListener {
 public:
  virtual ~LoadListener() = default;
  // On any thread, often: to be cheap.
  virtual void load_fell() = 0;
};

// Role. Notifies the requests that wait for the workers of a model, also those that came before its
//   options were changed.
// Confinement. Any thread.
// Lifetime. Shared by the fleet, the model's pools and their bookings; its listeners are their
//   pools'.
class LoadNotifier {
 public:
  void ring() const {
    if (!any_.load(std::memory_order_acquire)) return;
    const auto listeners = listeners_.get();
    for (const auto& one : *listeners) {
      if (const auto listener = one.lock()) listener->load_fell();
    }
  }
  void add(const std::shared_ptr<LoadListener>& listener) {
    const locks::Lock lock(adding_);
    auto listeners = *listeners_.get();
    std::erase_if(listeners, [](const auto& one) { return one.expired(); });
    listeners.push_back(listener);
    listeners_.set(std::move(listeners));
    any_.store(true, std::memory_order_release);
  }

 private:
  locks::Mutex adding_;  // one adds at a time
  Published<std::vector<std::weak_ptr<LoadListener>>> listeners_;
  std::atomic<bool> any_{false};  // there is one, or was
};

}  // namespace baton::fleet
