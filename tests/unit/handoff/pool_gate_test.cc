// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/pool_gate.h"

#include "telemetry/log.h"

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace baton::handoff {
namespace {

struct PoolGateTest : testing::Test {
  PoolGate& gate(const config::Queue& queue) {
    return PoolGate::of(*pool, queue, model::Policy::Kv, "m", io.get_executor(), metrics);
  }

  boost::asio::io_context io;
  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};
  std::shared_ptr<fleet::Pool> pool =
      std::make_shared<fleet::Pool>(config::Model(), "default", metrics, log);
};

TEST_F(PoolGateTest, IsOneForAPool) {
  config::Queue queue;
  queue.classes.emplace_back().name = "default";
  queue.classes[0].busy_tokens = 0;
  PoolGate& first = gate(queue);
  EXPECT_TRUE(first.gate());
  EXPECT_FALSE(first.followers());
  EXPECT_EQ(&gate(queue), &first);
  pool->bell().ring();  // nobody waits
}

TEST_F(PoolGateTest, WithoutClassesNobodyWaitsThere) {
  config::Queue queue;
  queue.follow_tokens = 100;
  EXPECT_FALSE(gate(queue).gate());
  EXPECT_TRUE(gate(queue).followers());
}

TEST(QueueDefaults, AreThePolicys) {
  const config::Queue plain = PoolGate::with_defaults({}, model::Policy::Kv);
  EXPECT_TRUE(plain.classes.empty());
  EXPECT_EQ(plain.follow_tokens, 0U);
  const config::Queue late = PoolGate::with_defaults({}, model::Policy::Ttft);
  ASSERT_EQ(late.classes.size(), 1U);
  EXPECT_TRUE(late.classes[0].late);
  EXPECT_TRUE(late.classes[0].queues());
  EXPECT_EQ(late.classes[0].order, config::QueueOrder::Shortest);
  EXPECT_GT(late.follow_tokens, 0U);
}

TEST(QueueDefaults, LeaveWhatIsConfigured) {
  config::Queue queue;
  queue.classes.emplace_back().name = "mine";
  queue.classes[0].busy_share = 4;
  queue.follow_tokens = 0;
  const config::Queue kept = PoolGate::with_defaults(queue, model::Policy::Ttft);
  EXPECT_EQ(kept, queue);
}

}  // namespace
}  // namespace baton::handoff
