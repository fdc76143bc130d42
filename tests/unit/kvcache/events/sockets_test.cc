// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/sockets.h"

#include <gtest/gtest.h>

#include <string>

namespace baton::kvcache {
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

// An engine that only connects, as vLLM does to an endpoint with a host, cannot be connected to.
TEST(SocketsTest, AttemptsThatFailAreCountedUntilOneDoesNot) {
  zmq::context_t context = make_context();
  zmq::socket_t publisher(context, zmq::socket_type::pub);
  publisher.set(zmq::sockopt::linger, 0);
  publisher.bind("tcp://127.0.0.1:*");
  const std::string endpoint = publisher.get(zmq::sockopt::last_endpoint);
  publisher.unbind(endpoint);
  auto subscriber = make_subscriber(context, endpoint, "inproc://refused");
  ASSERT_TRUE(subscriber);
  auto monitor = make_monitor(context, "inproc://refused");
  ASSERT_TRUE(monitor);
  std::size_t refused = 0;
  const auto listen = [&] {
    zmq::pollitem_t item{monitor->handle(), 0, ZMQ_POLLIN, 0};
    zmq::poll(&item, 1);
    const ConnectionNews news = read_monitor(*monitor);
    refused += news.refused;
    return news.made;
  };
  while (refused < 3) ASSERT_FALSE(listen());
  publisher.bind(endpoint);
  while (!listen()) continue;
  refused = 0;
  publisher.unbind(endpoint);
  publisher.close();
  while (refused < 1) listen();  // the end of a connection is no failed attempt, what follows is
  stop_monitor(*subscriber);
}

// An engine publishes faster than we read: what is on its way is taken off its hands all the same, for
// what it cannot get rid of it throws away. More than ZeroMQ queues unless told otherwise, and than
// the system's own buffers hold beside that.
TEST(SocketsTest, AReaderThatIsHeldUpLosesNothing) {
  constexpr int kBatches = 8'000;
  zmq::context_t context = make_context();
  zmq::socket_t publisher(context, zmq::socket_type::xpub);
  publisher.set(zmq::sockopt::linger, 0);
  publisher.set(zmq::sockopt::sndhwm, 100);
  publisher.set(zmq::sockopt::xpub_nodrop, 1);  // waits where it would throw away
  publisher.set(zmq::sockopt::sndtimeo, 20'000);
  publisher.set(zmq::sockopt::rcvtimeo, 20'000);
  publisher.bind("tcp://127.0.0.1:*");
  auto subscriber =
      make_subscriber(context, publisher.get(zmq::sockopt::last_endpoint), "inproc://held-up");
  ASSERT_TRUE(subscriber);
  const auto monitor = make_monitor(context, "inproc://held-up");
  ASSERT_TRUE(monitor);
  subscriber->set(zmq::sockopt::subscribe, "");
  zmq::message_t subscription;
  ASSERT_TRUE(publisher.recv(subscription));
  const std::string payload(4'096, 'x');
  for (int i = 0; i < kBatches; ++i)
    ASSERT_TRUE(publisher.send(zmq::buffer(std::to_string(i) + payload), zmq::send_flags::none))
        << "nobody takes batch " << i;
  subscriber->set(zmq::sockopt::rcvtimeo, 20'000);
  for (int i = 0; i < kBatches; ++i) {
    zmq::message_t batch;
    ASSERT_TRUE(subscriber->recv(batch)) << i;
    ASSERT_TRUE(batch.to_string_view().starts_with(std::to_string(i) + "x")) << i;
  }
  stop_monitor(*subscriber);
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
}  // namespace baton::kvcache
