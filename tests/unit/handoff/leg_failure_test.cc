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

TEST(BlameTest, IsOfTheLegsOwnWorker) {
  EXPECT_EQ(blame_for(error(Errc::EngineFailed), false), Blame::Worker);
  EXPECT_EQ(blame_for(error(Errc::EngineTimeout), false), Blame::Worker);
}

// A prefill worker that died leaves its decode worker with nothing to fetch.
TEST(BlameTest, IsOfBothWhereTheCacheHadNotArrived) {
  EXPECT_EQ(blame_for(error(Errc::EngineFailed), true), Blame::Pair);
  // The decode worker itself is away, or pushes back.
  EXPECT_EQ(blame_for(error(Errc::EngineUnreachable), true), Blame::Worker);
  EXPECT_EQ(blame_for(error(Errc::EngineOverloaded), true), Blame::Worker);
  EXPECT_EQ(blame_for(error(Errc::StreamBroken), true), Blame::Worker);
}

TEST(BlameTest, IsNobodysWhereThisProcessLacksSomething) {
  for (const bool awaits_cache : {false, true}) {
    EXPECT_EQ(blame_for(error(Errc::OutOfResources), awaits_cache), Blame::Nobody);
    EXPECT_EQ(blame_for(error(Errc::MemoryExhausted), awaits_cache), Blame::Nobody);
  }
}

}  // namespace
}  // namespace baton::handoff
