// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/kv_sockets.h"

#include <gtest/gtest.h>

#include <string>

namespace baton::sim {
namespace {

unsigned long port_of(const std::string& endpoint) {
  return std::stoul(endpoint.substr(endpoint.rfind(':') + 1));
}

TEST(KvSockets, RanksHaveConsecutivePorts) {
  zmq::context_t context;
  const auto opened = open_rank_sockets(context, zmq::socket_type::pub, "tcp://127.0.0.1:0", 3);
  ASSERT_TRUE(opened);
  ASSERT_EQ(opened->sockets.size(), 3U);
  const auto base = port_of(opened->endpoint);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(port_of(opened->sockets[i].get(zmq::sockopt::last_endpoint)), base + i);
  }
}

TEST(KvSockets, APortInUseIsSaidWithItsReason) {
  zmq::context_t context;
  const auto first = open_rank_sockets(context, zmq::socket_type::pub, "tcp://127.0.0.1:*", 1);
  ASSERT_TRUE(first);
  const auto second = open_rank_sockets(context, zmq::socket_type::router, first->endpoint, 1);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message().find("in use"), std::string::npos);
}

TEST(KvSockets, WhatIsNoAddressIsRefused) {
  zmq::context_t context;
  for (const char* endpoint :
       {"127.0.0.1:5557", "tcp://5557", "tcp://:5557", "tcp://127.0.0.1:", "tcp://127.0.0.1:x",
        "tcp://127.0.0.1:65535", "tcp://127.0.0.1:70000", "ipc:///tmp/x"}) {
    EXPECT_FALSE(open_rank_sockets(context, zmq::socket_type::pub, endpoint, 2)) << endpoint;
  }
}

TEST(KvSockets, ConnectingNeedsAPortAndNobodyThere) {
  zmq::context_t context;
  EXPECT_FALSE(open_rank_sockets(context, zmq::socket_type::pub, "tcp://127.0.0.1:0", 1, true));
  EXPECT_TRUE(open_rank_sockets(context, zmq::socket_type::pub, "tcp://127.0.0.1:9", 1, true));
}

}  // namespace
}  // namespace baton::sim
