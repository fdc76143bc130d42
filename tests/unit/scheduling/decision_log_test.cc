// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/decision_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace baton::scheduling {
namespace {

using testing::ElementsAre;

TEST(DecisionLog, TellsWhatWasDecided) {
  DecisionLog log(10);
  DecisionLog::Page page = log.open("id-1", "m", 42);
  page.bypass("declined");
  page.waited({.policy_class = "batch", .ahead = 3, .queued = std::chrono::seconds(2)});
  page.chosen({.part = Part::Prefill, .attempt = 1, .at = {}, .choice = {}});
  page.chosen({.part = Part::Decode, .attempt = 1, .at = {}, .choice = {}});
  auto found = log.find("id-1");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->model, "m");
  EXPECT_EQ(found->prompt_tokens, 42U);
  EXPECT_EQ(found->bypass, "declined");
  EXPECT_EQ(found->waited.policy_class, "batch");
  EXPECT_EQ(found->waited.queued, std::chrono::seconds(2));
  ASSERT_EQ(found->decisions.size(), 2U);
  EXPECT_EQ(found->decisions[1].part, Part::Decode);
  EXPECT_FALSE(found->outcome);
  Outcome outcome;
  outcome.status = 200;
  outcome.retries = 1;
  page.close(outcome);
  ASSERT_TRUE(log.find("id-1")->outcome);
  EXPECT_EQ(log.find("id-1")->outcome->retries, 1U);
  EXPECT_FALSE(log.find("id-2"));
}

TEST(DecisionLog, TellsWhoDidNotGetTheRequestAfterAll) {
  DecisionLog log(10);
  DecisionLog::Page page = log.open("id-1", "m", 0);
  page.given_back("nobody was chosen yet");
  page.chosen({});
  page.given_back("another was quicker");
  page.chosen({});
  const auto decided = log.find("id-1");
  ASSERT_EQ(decided->decisions.size(), 2U);
  EXPECT_EQ(decided->decisions[0].given_back, "another was quicker");
  EXPECT_EQ(decided->decisions[1].given_back, "");
  // Of a choice that is not remembered nothing else is told.
  for (int i = 0; i < 100; ++i) page.chosen({});
  page.given_back("the last");
  EXPECT_EQ(log.find("id-1")->decisions.back().given_back, "");
}

TEST(DecisionLog, ForgetsTheOldest) {
  DecisionLog log(3);
  for (int i = 0; i < 5; ++i) log.open("id-" + std::to_string(i), "m", 0);
  EXPECT_EQ(log.size(), 3U);
  EXPECT_THAT(log.recent(10), ElementsAre("id-4", "id-3", "id-2"));
  EXPECT_THAT(log.recent(1), ElementsAre("id-4"));
  EXPECT_FALSE(log.find("id-1"));
  EXPECT_TRUE(log.find("id-2"));
}

TEST(DecisionLog, OfTwoWithOneIdTheLaterIsFoundAlsoWhenTheFirstGoes) {
  DecisionLog log(2);
  log.open("same", "first", 0);
  log.open("same", "second", 0);
  EXPECT_EQ(log.find("same")->model, "second");
  log.open("other", "m", 0);
  EXPECT_EQ(log.find("same")->model, "second");
  log.open("another", "m", 0);
  EXPECT_FALSE(log.find("same"));
}

TEST(DecisionLog, OfNothingKeepsNothing) {
  DecisionLog log(0);
  DecisionLog::Page page = log.open("id-1", "m", 0);
  EXPECT_FALSE(page);
  page.chosen({});
  page.given_back("why");
  page.close({});
  EXPECT_EQ(log.size(), 0U);
}

TEST(DecisionLog, ARequestOfManyAttemptsStaysSmall) {
  DecisionLog log(1);
  DecisionLog::Page page = log.open("id-1", "m", 0);
  for (int i = 0; i < 1000; ++i) page.chosen({});
  EXPECT_EQ(log.find("id-1")->decisions.size(), 32U);
}

TEST(DecisionLog, APageMayOutliveItsPlace) {
  DecisionLog log(1);
  DecisionLog::Page page = log.open("id-1", "m", 0);
  log.open("id-2", "m", 0);
  page.close(Outcome());
  EXPECT_FALSE(log.find("id-1"));
}

}  // namespace
}  // namespace baton::scheduling
