// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/queue_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::scheduling {
namespace {

using testing::HasSubstr;

TEST(QueueMetrics, CountWhatWaitsByModelAndClass) {
  telemetry::Registry registry;
  config::Queue config;
  config.classes.resize(2);
  config.classes[0].name = "a";
  config.classes[1].name = "b";
  const QueueMetrics one(registry, "m", config);
  const QueueMetrics other(registry, "m", config);  // of another namespace
  one.came(1, {.requests = 1, .prompt_tokens = 30, .cached_tokens = 20, .uncached_tokens = 10});
  other.came(1, {.requests = 1, .prompt_tokens = 5, .cached_tokens = 0, .uncached_tokens = 5});
  one.left(1, {.requests = 1, .prompt_tokens = 30, .cached_tokens = 20, .uncached_tokens = 10});
  one.came(0, {.requests = 1, .prompt_tokens = 7, .cached_tokens = 3, .uncached_tokens = 4});
  one.turned_away(Turned::CachedTokens);
  other.turned_away(Turned::CachedTokens);
  one.turned_away(Turned::Timeout);
  const std::string text = registry.render();
  EXPECT_THAT(text, HasSubstr(R"(baton_queue_requests{model="m",class="a"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(baton_queue_requests{model="m",class="b"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(baton_queue_tokens{model="m",class="b"} 5)"));
  EXPECT_THAT(text, HasSubstr(R"(baton_queue_cached_tokens{model="m",class="a"} 3)"));
  EXPECT_THAT(text, HasSubstr(R"(baton_queue_cached_tokens{model="m",class="b"} 0)"));
  EXPECT_THAT(text, HasSubstr(R"(baton_queue_refused_total{model="m",reason="cached_tokens"} 2)"));
  EXPECT_THAT(text, HasSubstr(R"(baton_queue_refused_total{model="m",reason="timeout"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(baton_queue_refused_total{model="m",reason="busy"} 0)"));
}

}  // namespace
}  // namespace baton::scheduling
