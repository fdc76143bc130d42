// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/predecessor.h"

#include "app/next_process.h"
#include "net/pause.h"

#include <fmt/format.h>

#include <chrono>
#include <unistd.h>

namespace baton::app {
namespace {

constexpr std::chrono::milliseconds kReportEvery{20};

}  // namespace

Predecessor::Predecessor(int channel) : channel_(channel) {
  become_orphan();
  channel_.send(fmt::format("pid {}", ::getpid()));
}

boost::asio::awaitable<void> Predecessor::wait(std::function<Progress()> progress) {
  auto told = Progress::Starting;
  while (true) {
    // A message or the channel's end: from now on only this process serves.
    if (!channel_.receive().empty() || channel_.ended()) co_return;
    const Progress now = progress();
    if (now == Progress::Ended) co_return;
    if (now != told && now != Progress::Starting)
      channel_.send(now == Progress::Ready ? "ready" : "checked");
    told = now;
    co_await net::pause(kReportEvery);
  }
}

}  // namespace baton::app
