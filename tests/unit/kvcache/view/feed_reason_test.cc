// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/feed_reason.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::kvcache {
namespace {

using model::Engine;
using testing::HasSubstr;

TEST(FeedReason, IsSaidOfEveryStateThatIsNotWell) {
  for (const FeedHealth well : {FeedHealth::None, FeedHealth::Waiting, FeedHealth::Live})
    EXPECT_EQ(feed_reason(well, {}, Engine::Vllm), "");
  for (const FeedHealth bad :
       {FeedHealth::Silent, FeedHealth::Unreachable, FeedHealth::Mixed, FeedHealth::Broken})
    EXPECT_NE(feed_reason(bad, {}, Engine::Vllm), "");
}

TEST(FeedReason, OfAnUnreachableOneNamesTheEndpointAndTheEngine) {
  FeedPlan plan;
  plan.events = "tcp://10.0.0.1:5557";
  const std::string reason = feed_reason(FeedHealth::Unreachable, plan, Engine::Sglang);
  EXPECT_THAT(reason, HasSubstr("tcp://10.0.0.1:5557"));
  EXPECT_THAT(reason, HasSubstr("sglang"));
}

}  // namespace
}  // namespace baton::kvcache
