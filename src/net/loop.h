// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <boost/asio/io_context.hpp>

namespace baton::net {

// Role. An io_context that can destroy its waiting handlers, and with them all suspended coroutines,
//   before it is destroyed itself. A coroutine that is still suspended at the end of the process
//   uses the objects of its thread in its destructors, so it must go before them.
// Confinement. As an io_context; destroy_handlers(): no thread runs it any more.
class Loop : public boost::asio::io_context {
 public:
  using boost::asio::io_context::io_context;

  // Nothing runs here afterwards.
  void destroy_handlers() {
    stop();
    shutdown();
  }
};

}  // namespace baton::net
