// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "app/line_channel.h"

#include <boost/asio/awaitable.hpp>

#include <functional>
#include <string_view>

namespace baton::app {

// Role. This process's view of its predecessor, which serves until it is told that this process is
//   ready. Successor is the other end.
// Confinement. The control thread.
class Predecessor {
 public:
  // How far this process has come.
  enum class Progress { Starting, Checked, Ready, Ended };

  // Detaches from the parent and sends this process's id. Call before there are other threads.
  explicit Predecessor(int channel);

  // Tells it how far this process has come, until it has left or is gone, or `progress` is Ended.
  boost::asio::awaitable<void> wait(std::function<Progress()> progress);

 private:
  LineChannel channel_;
};

}  // namespace baton::app
