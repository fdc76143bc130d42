// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"

#include <cstdint>
#include <string>
#include <vector>
#include <zmq.hpp>

namespace baton::sim {

// Sockets of one kind for all data-parallel ranks, on consecutive ports.
struct RankSockets {
  std::vector<zmq::socket_t> sockets;
  std::string endpoint;  // of the first
};

// `endpoint` is tcp://host:port; with port 0 or * free ones are found. Binds, or with `connect`
// leaves that to the other side.
Result<RankSockets> open_rank_sockets(zmq::context_t& context, zmq::socket_type type,
                                      const std::string& endpoint, std::uint32_t ranks,
                                      bool connect = false);

}  // namespace baton::sim
