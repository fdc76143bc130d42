// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/slo_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::scheduling {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

class SloRecordTest : public testing::Test {
 protected:
  static config::Slo objective() {
    return {.ttft = milliseconds(300), .itl = milliseconds(40), .queue_late = false};
  }
  telemetry::Registry registry;
  SloRecord record{objective(), registry, "m", "default", "chat"};
  SloRecord::Time now{seconds(1000)};
};

TEST_F(SloRecordTest, AStreamMeetsItsObjectiveInBothOrNotAtAll) {
  record.served(0.2, 0.03, now);
  record.served(0.2, std::nullopt, now);  // one token: there is no time between tokens
  EXPECT_EQ(record.attainment(now), 1);
  record.served(0.4, 0.03, now);
  record.served(0.2, 0.05, now);
  record.served(std::nullopt, std::nullopt, now);
  record.failed(now);
  EXPECT_NEAR(record.attainment(now), 2.0 / 6, 1e-9);
  record.refused(false);
  const std::string metrics = registry.render();
  const std::string labels = R"({model="m",namespace="default",class="chat")";
  EXPECT_THAT(metrics, HasSubstr("baton_slo_requests_total" + labels + R"(,outcome="met"} 2)"));
  EXPECT_THAT(metrics, HasSubstr("baton_slo_requests_total" + labels + R"(,outcome="missed"} 4)"));
  EXPECT_THAT(metrics, HasSubstr("baton_slo_requests_total" + labels + R"(,outcome="refused"} 1)"));
  EXPECT_THAT(metrics, HasSubstr("baton_slo_attainment" + labels + "} 0.33"));
}

TEST_F(SloRecordTest, SeriesEndWithTheLastRecordOfTheirNamespace) {
  const auto written = [this] {
    const std::string metrics = registry.render();
    const bool requests =
        metrics.find(R"(requests_total{model="m",namespace="blue")") < metrics.size();
    const bool attainment =
        metrics.find(R"(attainment{model="m",namespace="blue")") < metrics.size();
    EXPECT_EQ(requests, attainment);
    return requests;
  };
  {
    SloRecord before(objective(), registry, "m", "blue", "chat");
    before.refused(false);
    const SloRecord after(objective(), registry, "m", "blue", "chat");
    EXPECT_TRUE(written());
  }
  EXPECT_FALSE(written());
  EXPECT_THAT(registry.render(), HasSubstr(R"(attainment{model="m",namespace="default")"));
}

TEST_F(SloRecordTest, AttainmentIsThatOfTheLastMinute) {
  for (int i = 0; i < 100; ++i) record.served(1, {}, now);
  EXPECT_EQ(record.attainment(now), 0);
  now += seconds(300);
  for (int i = 0; i < 100; ++i) record.served(0.1, {}, now);
  EXPECT_GT(record.attainment(now), 0.99);
}

TEST_F(SloRecordTest, BeforeTheFirstStreamNothingIsMissed) {
  EXPECT_EQ(record.attainment(now), 1);
  EXPECT_THAT(registry.render(), HasSubstr(R"(class="chat"} 1)"));
}

TEST_F(SloRecordTest, LateFirstTokensLeaveLessOfTheObjectiveToForecasts) {
  const double first = record.margin();
  EXPECT_LT(first, 1);
  record.served(0.4, {}, now);
  EXPECT_LT(record.margin(), first);
  for (int i = 0; i < 10'000; ++i) record.served(0.4, {}, now);
  const double least = record.margin();
  EXPECT_GT(least, 0.1) << "or nobody would be admitted, and nothing learned";
  for (int i = 0; i < 10'000; ++i) record.served(0.1, {}, now);
  EXPECT_EQ(record.margin(), 1);
}

TEST_F(SloRecordTest, ABrokenPromiseLeavesLessOfTheObjectiveToForecasts) {
  const double first = record.margin();
  record.refused(false);
  EXPECT_EQ(record.margin(), first) << "it was not promised anything";
  record.refused(true);
  EXPECT_LT(record.margin(), first);
}

// Late tokens after the first are no reason to find workers earlier.
TEST_F(SloRecordTest, SlowTokensLeaveTheMarginAsItIs) {
  const double first = record.margin();
  for (int i = 0; i < 100; ++i) record.served(0.1, 0.5, now);
  EXPECT_GE(record.margin(), first);
}

TEST_F(SloRecordTest, AMarginRestsWhereOneOfAHundredIsLate) {
  // What is expected to take `margin` of the objective takes up to a quarter more.
  unsigned drawn = 1;
  int late = 0;
  constexpr int kRequests = 40'000;
  for (int i = 0; i < kRequests; ++i) {
    drawn = drawn * 1'664'525U + 1'013'904'223U;
    const double ttft = 0.3 * record.margin() * (1 + 0.25 * (drawn >> 8) / double{1U << 24U});
    if (i >= kRequests / 2 && ttft > 0.3) ++late;
    record.served(ttft, {}, now);
  }
  EXPECT_NEAR(static_cast<double>(late) / (kRequests / 2.0), 0.01, 0.004);
}

}  // namespace
}  // namespace baton::scheduling
