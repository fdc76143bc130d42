// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/error.h"

#include <boost/intrusive/list.hpp>

#include <functional>
#include <optional>
#include <utility>

namespace baton {

// Role. Notifies all parts that work for one request that its result is not wanted, and why.
// Confinement. The request's I/O thread.
// Lifetime. Owned by the code that serves the request; outlives its listeners.
// Invariants. The first reason stays; each listener is told at most once.
class Cancellation {
 public:
  // Runs `on_cancel` when the request is cancelled, for as long as it lives; at once where that has
  // already happened.
  class Listener : public boost::intrusive::list_base_hook<
                       boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
   public:
    Listener(Cancellation& cancellation, std::function<void()> on_cancel)
        : on_cancel_(std::move(on_cancel)) {
      if (cancellation.requested()) {
        on_cancel_();
      } else {
        cancellation.listeners_.push_back(*this);
      }
    }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

   private:
    friend class Cancellation;
    std::function<void()> on_cancel_;
  };

  Cancellation() = default;
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  void request(Error reason) {
    if (reason_) return;
    reason_ = std::move(reason);
    while (!listeners_.empty()) {
      // Taken out of the listener, which may end itself or be ended by what is called.
      const std::function<void()> on_cancel = std::move(listeners_.front().on_cancel_);
      listeners_.pop_front();
      on_cancel();
    }
  }
  bool requested() const { return reason_.has_value(); }
  // Requires: requested().
  const Error& reason() const { return *reason_; }

 private:
  std::optional<Error> reason_;
  boost::intrusive::list<Listener, boost::intrusive::constant_time_size<false>> listeners_;
};

}  // namespace baton
