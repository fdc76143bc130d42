// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/task.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/system/system_error.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <utility>

namespace baton::sim {

void spawn(const boost::asio::any_io_executor& executor, boost::asio::awaitable<void> task) {
  boost::asio::co_spawn(executor, std::move(task), [](std::exception_ptr failure) {
    if (!failure) return;
    try {
      std::rethrow_exception(failure);
    } catch (const boost::system::system_error& error) {
      if (error.code() != boost::asio::error::operation_aborted) {
        fmt::print(stderr, "sim: task failed: {}\n", error.what());
      }
    } catch (const std::exception& error) {
      fmt::print(stderr, "sim: task failed: {}\n", error.what());
    }
  });
}

}  // namespace baton::sim
