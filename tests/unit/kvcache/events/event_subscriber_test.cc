// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/event_subscriber.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace baton::kvcache {
namespace {

// A socket of a context that is being ended refuses everything.
TEST(EventSubscriber, WhatZeroMqRefusesIsSaidAndEndsNothing) {
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Debug, lines};
  Index index{{}};
  FeedContext context{.index = index, .log = log, .options = {}};
  const Holder holder{{1}, 0};
  StatusCell cell;
  {
    FeedSpec spec;
    spec.holder = holder;
    spec.name = "w";
    spec.events = "tcp://127.0.0.1:1";  // to connect to
    FeedReader reader(context, spec, index.join(holder), cell);
    EventSubscriber subscriber(context, spec.events, "one");
    context.zmq.shutdown();
    subscriber.work();
    EXPECT_NO_THROW(subscriber.add(reader));
    EXPECT_NO_THROW(subscriber.remove(reader));
  }
  EXPECT_THAT(lines, testing::HasSubstr("ZeroMQ refuses the subscription"));
}

}  // namespace
}  // namespace baton::kvcache
