// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/request_deadline.h"

#include "support/io_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::pipeline {
namespace {

using namespace std::chrono_literals;
using scheduling::Trusted;
using testing::HasSubstr;

wire::Headers headers(const std::vector<std::string>& values) {
  wire::Headers made;
  made.add("X-Other", "1");
  for (const std::string& value : values) made.add("x-request-timeout-ms", value);
  return made;
}

TEST(RequestTimeout, IsTheConfiguredOneWhereTheRequestSaysNothing) {
  const auto timeout = request_timeout(headers({}), Trusted::Yes, 5s);
  ASSERT_TRUE(timeout);
  EXPECT_EQ(timeout->time, 5s);
  EXPECT_EQ(timeout->said_by, "timeouts.request");
}

TEST(RequestTimeout, MayBeShortenedByAllAndLengthenedByThoseWhoAreTrusted) {
  const struct {
    std::chrono::milliseconds configured;
    const char* said;
    Trusted trusted;
    std::chrono::milliseconds time;
  } cases[] = {
      {5s, "4999", Trusted::No, 4999ms},   {5s, "5001", Trusted::No, 5s},
      {5s, "4999", Trusted::Yes, 4999ms},  {5s, "5001", Trusted::Yes, 5001ms},
      {0s, "86400000", Trusted::No, 24h},  {0s, "1", Trusted::No, 1ms},
      {5s, "86400000", Trusted::Yes, 24h},
  };
  for (const auto& c : cases) {
    const auto timeout = request_timeout(headers({c.said}), c.trusted, c.configured);
    ASSERT_TRUE(timeout) << c.said;
    EXPECT_EQ(timeout->time, c.time) << c.said;
    const bool by_header = c.time != c.configured;
    EXPECT_EQ(timeout->said_by, by_header ? kRequestTimeoutHeader : "timeouts.request") << c.said;
  }
}

TEST(RequestTimeout, IsRefusedByNameWhereItMakesNoSense) {
  for (const Trusted trusted : {Trusted::No, Trusted::Yes}) {
    for (const char* said : {"", "0", "-1", "+1", "1.5", "1s", " 1", "86400001",
                             "99999999999999999999", "1,2", "ten"}) {
      const auto timeout = request_timeout(headers({said}), trusted, 5s);
      ASSERT_FALSE(timeout) << said;
      EXPECT_EQ(timeout.error().code(), Errc::InvalidRequest) << said;
      EXPECT_THAT(timeout.error().message(), HasSubstr("X-Request-Timeout-Ms")) << said;
      EXPECT_EQ(timeout.error().param(), "X-Request-Timeout-Ms") << said;
    }
  }
  EXPECT_FALSE(request_timeout(headers({"7", "8"}), Trusted::Yes, 5s));
  EXPECT_TRUE(request_timeout(headers({"7", "7"}), Trusted::Yes, 5s));
}

struct RequestDeadlineTest : test::IoFixture {
  static std::chrono::steady_clock::time_point now() { return std::chrono::steady_clock::now(); }
  Cancellation cancellation;
  RequestDeadline deadline{deadlines, cancellation};
};

TEST_F(RequestDeadlineTest, EndsTheRequestWhenItsTimeIsOver) {
  const auto begun = now();
  deadline.begin({150ms, kRequestTimeoutHeader}, begun);
  EXPECT_FALSE(cancellation.requested());
  run_until([this] { return cancellation.requested(); });
  EXPECT_GE(now() - begun, 150ms);
  EXPECT_EQ(cancellation.reason().code(), Errc::DeadlineExceeded);
  EXPECT_EQ(cancellation.reason().limit(), Limit::Request);
  EXPECT_THAT(cancellation.reason().message(), HasSubstr("150 ms (X-Request-Timeout-Ms)"));
}

TEST_F(RequestDeadlineTest, CountsFromTheHeadOfTheRequest) {
  deadline.begin({10s, "timeouts.request"}, now() - 11s);
  EXPECT_TRUE(cancellation.requested()) << "the body took longer than that";
}

TEST_F(RequestDeadlineTest, EndsNothingWithoutATimeOrAfterTheRequest) {
  deadline.begin({0ms, "timeouts.request"}, now() - 1h);
  EXPECT_FALSE(cancellation.requested());
  {
    RequestDeadline short_one(deadlines, cancellation);
    short_one.begin({1ms, "timeouts.request"}, now());
  }
  run_for(4 * net::Deadlines::kTick);
  EXPECT_FALSE(cancellation.requested());
}

}  // namespace
}  // namespace baton::pipeline
