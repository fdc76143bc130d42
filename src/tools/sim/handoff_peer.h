// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "tools/sim/options.h"
#include "tools/sim/request.h"

#include <boost/asio/awaitable.hpp>

#include <vector>

namespace baton::sim {

// The decode worker's side of a hand-off, over the network to the worker named in the request:
// fetches the tokens its blocks carry, takes the simulated transfer time, lets the blocks go.
boost::asio::awaitable<Result<std::vector<TokenId>>> fetch_prompt(const Options& options,
                                                                  HandoffSource source);

// Lets the blocks go without having fetched them, for a request that will not run.
boost::asio::awaitable<void> release_prompt(HandoffSource source);

}  // namespace baton::sim
