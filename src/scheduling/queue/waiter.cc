// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/waiter.h"

#include "net/await.h"

namespace baton::scheduling {

boost::asio::awaitable<void> Waiter::sleep(Time deadline, Cancellation& cancellation) {
  const Cancellation::Listener listener(cancellation, [this] { ring(); });
  timer_.expires_at(deadline);
  while (!rung_ && std::chrono::steady_clock::now() < deadline)
    co_await timer_.async_wait(net::kAwait);
}

}  // namespace baton::scheduling
