// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/error.h"
#include "fleet/worker.h"
#include "http_client/exchange.h"
#include "http_client/upstream_pool.h"

#include <boost/asio/awaitable.hpp>

namespace baton::handoff {

// Whether the worker's process has ended under an exchange that failed so. Asks it, if the error
// leaves that open: for 250 ms at most.
boost::asio::awaitable<bool> process_ended(http_client::UpstreamPool& pool,
                                           const fleet::Worker& worker, const Error& error,
                                           const http_client::Exchange& exchange);

}  // namespace baton::handoff
