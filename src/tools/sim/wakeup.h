// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <functional>
#include <utility>

namespace baton::sim {

// Role. Lets one coroutine sleep until another part of the program has work for it; cheaper than
//   cancelling a timer, which matters at tens of thousands of tokens a second.
// Confinement. One thread.
// Lifetime. Outlives the coroutine that waits on it.
// Invariants. A notification is never lost: if no coroutine waits, the next wait returns at once.
//   Waits can be cancelled, and then simply return.
class Wakeup {
 public:
  void notify() {
    if (resume_) {
      std::exchange(resume_, nullptr)();
    } else {
      pending_ = true;
    }
  }

  boost::asio::awaitable<void> wait() {
    if (!std::exchange(pending_, false)) co_await suspend();
  }

 private:
  boost::asio::awaitable<void> suspend() {
    return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void()>(
        [this](auto handler) {
          const auto slot = boost::asio::get_associated_cancellation_slot(handler);
          if (slot.is_connected()) {
            auto on_cancel = slot;
            on_cancel.assign([this](boost::asio::cancellation_type) {
              if (resume_) std::exchange(resume_, nullptr)();
            });
          }
          resume_ = [handler = std::move(handler)]() mutable {
            boost::asio::post(std::move(handler));
          };
        },
        boost::asio::use_awaitable);
  }

  std::move_only_function<void()> resume_;
  bool pending_ = false;
};

}  // namespace baton::sim
