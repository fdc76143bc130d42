// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/leg_failure.h"

#include <gtest/gtest.h>

namespace baton::handoff {
namespace {

Error error(Errc code) { return Error(code, "it failed"); }

TEST(LegFailure, IsRepeatedUnlessTheRequestIsWrong) {
  EXPECT_TRUE(failure_of(error(Errc::EngineFailed)).retryable);
  EXPECT_TRUE(failure_of(error(Errc::EngineUnreachable)).retryable);
  EXPECT_FALSE(failure_of(error(Errc::EngineRejected)).retryable);
}

TEST(LegFailure, BeforeTheWorkerBeganLeavesTheBlocksUntouched) {
  EXPECT_TRUE(failure_of(error(Errc::EngineUnreachable)).untouched);
  EXPECT_TRUE(failure_of(error(Errc::EngineOverloaded)).untouched);
  EXPECT_TRUE(failure_of(error(Errc::OutOfResources)).untouched);
  EXPECT_FALSE(failure_of(error(Errc::EngineFailed)).untouched);
  EXPECT_FALSE(failure_of(error(Errc::EngineTimeout)).untouched);
}

TEST(FailedPartTest, IsOfTheLegsOwnWorker) {
  EXPECT_EQ(failed_part(error(Errc::EngineFailed), false), FailedPart::Worker);
  EXPECT_EQ(failed_part(error(Errc::EngineTimeout), false), FailedPart::Worker);
}

// A prefill worker that died leaves its decode worker with nothing to fetch.
TEST(FailedPartTest, IsOfBothWhereTheCacheHadNotArrived) {
  EXPECT_EQ(failed_part(error(Errc::EngineFailed), true), FailedPart::Pair);
  // The decode worker itself is away, or pushes back.
  EXPECT_EQ(failed_part(error(Errc::EngineUnreachable), true), FailedPart::Worker);
  EXPECT_EQ(failed_part(error(Errc::EngineOverloaded), true), FailedPart::Worker);
  EXPECT_EQ(failed_part(error(Errc::StreamBroken), true), FailedPart::Worker);
}

TEST(FailedPartTest, IsNobodysWhereThisProcessLacksSomething) {
  for (const bool awaits_cache : {false, true}) {
    EXPECT_EQ(failed_part(error(Errc::OutOfResources), awaits_cache), FailedPart::None);
    EXPECT_EQ(failed_part(error(Errc::MemoryExhausted), awaits_cache), FailedPart::None);
  }
}

}  // namespace
}  // namespace baton::handoff
