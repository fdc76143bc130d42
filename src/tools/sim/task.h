// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

namespace baton::sim {

// Starts a detached coroutine. It ends by itself, at the latest when the server closes the sockets;
// an exception that reaches its end, other than cancellation, is reported on stderr.
void spawn(const boost::asio::any_io_executor& executor, boost::asio::awaitable<void> task);

}  // namespace baton::sim
