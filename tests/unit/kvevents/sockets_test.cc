// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvevents/sockets.h"

#include <gtest/gtest.h>

namespace baton::kvevents {
namespace {

// ZeroMQ's own thread, which serves all sockets, would wait for whoever reads them.
TEST(SocketsTest, WhatAMonitorIsToldNeverWaits) {
  zmq::context_t context = make_context();
  zmq::socket_t teller(context, zmq::socket_type::pair);
  teller.set(zmq::sockopt::linger, 0);
  teller.bind("inproc://told");
  const auto monitor = make_monitor(context, "inproc://told");
  ASSERT_TRUE(monitor);
  for (int i = 0; i < 10'000; ++i)
    ASSERT_TRUE(teller.send(zmq::message_t(6), zmq::send_flags::dontwait)) << i;
}

TEST(SocketsTest, AMonitorThatWasStoppedIsToldNoMore) {
  zmq::context_t context = make_context();
  zmq::socket_t publisher(context, zmq::socket_type::pub);
  publisher.set(zmq::sockopt::linger, 0);
  publisher.bind("tcp://127.0.0.1:*");
  auto subscriber =
      make_subscriber(context, publisher.get(zmq::sockopt::last_endpoint), "inproc://connections");
  ASSERT_TRUE(subscriber);
  auto monitor = make_monitor(context, "inproc://connections");
  ASSERT_TRUE(monitor);
  bool made = false;
  while (!made) {
    zmq::pollitem_t item{monitor->handle(), 0, ZMQ_POLLIN, 0};
    zmq::poll(&item, 1);
    made = read_monitor(*monitor).made;
  }
  stop_monitor(*subscriber);
  publisher.close();
  EXPECT_FALSE(read_monitor(*monitor).given_up);
}

TEST(SocketsTest, WhatCannotBeReachedIsSaid) {
  zmq::context_t context = make_context();
  const auto subscriber = make_subscriber(context, "no://such/protocol", "inproc://none");
  ASSERT_FALSE(subscriber);
  EXPECT_NE(subscriber.error().message().find("no://such/protocol"), std::string::npos);
  EXPECT_FALSE(make_monitor(context, "no://such"));
  EXPECT_FALSE(make_replay(context, "no://such", 0));
}

}  // namespace
}  // namespace baton::kvevents
