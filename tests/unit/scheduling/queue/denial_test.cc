// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/denial.h"

#include <gmock/gmock.h>

namespace baton::scheduling {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

TEST(Denial, AFullQueueIsToldWithItsFigures) {
  const Denial denial = full({.policy_class = "a \"b\"",
                              .kind = LimitKind::RawIslTokens,
                              .current = 90,
                              .limit = 100,
                              .own = 20},
                             seconds(3));
  EXPECT_EQ(denial.why, Turned::RawIslTokens);
  EXPECT_EQ(denial.error.http_status(), 429);
  EXPECT_EQ(denial.error.retry_after(), seconds(3));
  EXPECT_THAT(denial.error.message(), HasSubstr("is full (90 of 100 raw_isl_tokens wait)"));
  EXPECT_EQ(denial.error.figures(),
            R"({"policy_class":"a \"b\"","limit_kind":"raw_isl_tokens","current":90,"limit":100})");
}

TEST(Denial, WhoIsLargerThanALimitIsToldWhich) {
  const Denial denial = full({.policy_class = "a",
                              .kind = LimitKind::CachedTokens,
                              .current = 0,
                              .limit = 100,
                              .own = 120},
                             seconds(1));
  EXPECT_EQ(denial.error.code(), Errc::QueueFull);
  EXPECT_THAT(
      denial.error.message(),
      AllOf(HasSubstr("can never wait"), HasSubstr("its 120 cached_tokens are more than the 100")));
}

TEST(Denial, ATooLongWaitIsToldInMilliseconds) {
  const Denial denial = too_long("a", 4.5, 3, seconds(5));
  EXPECT_EQ(denial.why, Turned::TooLong);
  EXPECT_EQ(denial.error.http_status(), 429);
  EXPECT_EQ(denial.error.retry_after(), seconds(5));
  EXPECT_THAT(denial.error.message(), HasSubstr("about 4.5 s"));
  EXPECT_EQ(denial.error.figures(),
            R"({"policy_class":"a","limit_kind":"wait_ms","current":4500,"limit":3000})");
}

TEST(Denial, WhoWouldMissItsObjectiveIsToldByHowMuch) {
  const Denial denial = too_late("a", 1.25, 0.3, seconds(5));
  EXPECT_EQ(denial.why, Turned::Late);
  EXPECT_EQ(denial.error.code(), Errc::SloUnattainable);
  EXPECT_EQ(denial.error.http_status(), 503);
  EXPECT_EQ(denial.error.retry_after(), seconds(5));
  EXPECT_THAT(denial.error.message(), AllOf(HasSubstr("1.25 s after"), HasSubstr("0.30 s")));
  EXPECT_EQ(denial.error.figures(),
            R"({"policy_class":"a","limit_kind":"slo_ttft_ms","current":1250,"limit":300})");
}

TEST(Denial, WhoMayNotWaitAndWhoHasWaitedAreToldToComeAgain) {
  EXPECT_EQ(busy("a", seconds(2)).error.code(), Errc::WorkersBusy);
  EXPECT_EQ(busy("a", seconds(2)).error.retry_after(), seconds(2));
  const Denial late = timed_out("a", 7, seconds(2));
  EXPECT_EQ(late.why, Turned::Timeout);
  EXPECT_EQ(late.error.code(), Errc::QueueTimeout);
  EXPECT_THAT(late.error.message(), HasSubstr("7 requests of class \"a\" wait"));
}

}  // namespace
}  // namespace baton::scheduling
