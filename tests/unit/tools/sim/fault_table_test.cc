// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/fault_table.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace baton::sim {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

const TimePoint kNow{};

TEST(FaultTable, StrikesTheNextRequestsOfItsPhase) {
  FaultTable faults;
  faults.add({.kind = FaultKind::Cut, .phase = Phase::Decode, .count = 2}, kNow);
  EXPECT_FALSE(faults.strike(Phase::Prefill, kNow));
  EXPECT_TRUE(faults.strike(Phase::Decode, kNow));
  EXPECT_TRUE(faults.strike(Phase::Decode, kNow));
  EXPECT_FALSE(faults.strike(Phase::Decode, kNow));
}

TEST(FaultTable, StrikesOnlyRequestsThatItMatches) {
  FaultTable faults;
  faults.add(*read_fault({{"kind", "die"}, {"match", "poison"}, {"count", 1}}), kNow);
  EXPECT_FALSE(faults.strike(Phase::Prefill, kNow, R"({"prompt":"bread"})"));
  EXPECT_FALSE(faults.strike(Phase::Prefill, kNow));
  EXPECT_EQ(faults.list(kNow)[0]["match"], "poison");
  EXPECT_TRUE(faults.strike(Phase::Prefill, kNow, R"({"prompt":"some poison"})"));
  EXPECT_FALSE(faults.strike(Phase::Prefill, kNow, R"({"prompt":"some poison"})"));
  EXPECT_FALSE(read_fault({{"kind", "die"}, {"match", 1}}));
  EXPECT_FALSE(read_fault({{"kind", "refuse"}, {"match", "x"}}));
  EXPECT_FALSE(read_fault({{"kind", "kv_drop"}, {"match", "x"}}));
  EXPECT_FALSE(read_fault({{"kind", "hang"}, {"phase", "health"}, {"match", "x"}}));
}

TEST(FaultTable, WithoutCountOrTimeLastsUntilCleared) {
  FaultTable faults;
  faults.add({.kind = FaultKind::Hang}, kNow);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(faults.strike(Phase::Aggregated, kNow + 1h));
  faults.clear();
  EXPECT_FALSE(faults.strike(Phase::Aggregated, kNow));
}

TEST(FaultTable, EndsWhenItsTimeIsOver) {
  FaultTable faults;
  faults.add({.kind = FaultKind::Refuse, .for_ms = 100}, kNow);
  EXPECT_TRUE(faults.refusing(kNow + 99ms));
  EXPECT_FALSE(faults.refusing(kNow + 100ms));
}

TEST(FaultTable, RefusalIsNoFaultOfARequest) {
  FaultTable faults;
  faults.add({.kind = FaultKind::Refuse}, kNow);
  EXPECT_FALSE(faults.strike(Phase::Prefill, kNow));
}

TEST(FaultTable, OfHealthAndOfRequestsAreApart) {
  FaultTable faults;
  faults.add({.kind = FaultKind::Hang}, kNow);
  EXPECT_FALSE(faults.strike_health(kNow));
  faults.clear();
  faults.add({.kind = FaultKind::Status, .health = true, .count = 1}, kNow);
  EXPECT_FALSE(faults.strike(Phase::Aggregated, kNow));
  EXPECT_TRUE(faults.strike_health(kNow));
  EXPECT_FALSE(faults.strike_health(kNow));
}

TEST(FaultTable, OfHealthAreThoseThatAnAnswerWithoutTokensCanHave) {
  for (const char* kind : {"reset", "status", "hang", "slow"}) {
    const auto fault = read_fault({{"kind", kind}, {"phase", "health"}});
    ASSERT_TRUE(fault) << kind;
    FaultTable faults;
    faults.add(*fault, kNow);
    EXPECT_EQ(faults.list(kNow)[0]["phase"], "health");
  }
  for (const char* kind : {"refuse", "hang_stream", "cut", "malformed", "error_event", "die"})
    EXPECT_FALSE(read_fault({{"kind", kind}, {"phase", "health"}})) << kind;
}

TEST(FaultTable, OfKvEventsAndOfRequestsAreApart) {
  FaultTable faults;
  faults.add({.kind = FaultKind::KvDrop, .count = 1}, kNow);
  faults.add({.kind = FaultKind::Cut}, kNow);
  EXPECT_EQ(faults.strike(Phase::Aggregated, kNow)->kind, FaultKind::Cut);
  EXPECT_EQ(faults.strike_kv(kNow)->kind, FaultKind::KvDrop);
  EXPECT_FALSE(faults.strike_kv(kNow));
  EXPECT_TRUE(read_fault({{"kind", "kv_lie"}}));
  EXPECT_FALSE(read_fault({{"kind", "kv_lie"}, {"phase", "decode"}}));
  EXPECT_FALSE(read_fault({{"kind", "kv_lie"}, {"phase", "health"}}));
}

TEST(FaultTable, StretchesStepsAndStrikesNothingElse) {
  FaultTable faults;
  EXPECT_EQ(faults.step_factor(kNow), 1);
  const auto slow = read_fault({{"kind", "slow_steps"}, {"factor", 2.5}, {"for_ms", 100}});
  ASSERT_TRUE(slow);
  faults.add(*slow, kNow);
  EXPECT_FALSE(faults.strike(Phase::Aggregated, kNow));
  EXPECT_FALSE(faults.strike_kv(kNow));
  EXPECT_FALSE(faults.strike_health(kNow));
  EXPECT_EQ(faults.list(kNow)[0]["factor"], 2.5);
  EXPECT_EQ(faults.step_factor(kNow + 99ms), 2.5);
  EXPECT_EQ(faults.step_factor(kNow + 100ms), 1);

  faults.add({.kind = FaultKind::Hang}, kNow);
  EXPECT_EQ(faults.step_factor(kNow), 1);
  faults.add(*read_fault({{"kind", "slow_steps"}, {"factor", 3}, {"count", 1}}), kNow);
  EXPECT_EQ(faults.step_factor(kNow), 3);
  EXPECT_EQ(faults.step_factor(kNow), 1);
}

TEST(FaultTable, AFactorBelongsToSlowStepsAndNothingElse) {
  EXPECT_FALSE(read_fault({{"kind", "slow_steps"}}));
  EXPECT_FALSE(read_fault({{"kind", "slow_steps"}, {"factor", -1}}));
  EXPECT_FALSE(read_fault({{"kind", "slow_steps"}, {"factor", "2"}}));
  EXPECT_FALSE(read_fault({{"kind", "slow"}, {"factor", 2}}));
  EXPECT_FALSE(read_fault({{"kind", "slow_steps"}, {"factor", 2}, {"phase", "decode"}}));
  EXPECT_FALSE(read_fault({{"kind", "slow_steps"}, {"factor", 2}, {"match", "x"}}));
}

TEST(FaultTable, ReadsAndListsEveryField) {
  const json body =
      json::parse(R"({"kind":"slow","phase":"prefill","count":3,"status":429,"after_tokens":5,)"
                  R"("delay_ms":1.5,"for_ms":60})");
  const auto fault = read_fault(body);
  ASSERT_TRUE(fault);
  FaultTable faults;
  faults.add(*fault, kNow);
  EXPECT_EQ(faults.list(kNow), json::array({body}));
}

TEST(FaultTable, RefusesWhatItDoesNotUnderstand) {
  for (const char* body :
       {"[]", "{}", R"({"kind":"x"})", R"({"kind":"cut","phase":"x"})",
        R"({"kind":"cut","typo":1})", R"({"kind":"cut","count":-1})",
        R"({"kind":"status","status":"x"})", R"({"kind":"status","status":600})"}) {
    EXPECT_FALSE(read_fault(json::parse(body))) << body;
  }
}

}  // namespace
}  // namespace baton::sim
