// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/leg_name.h"

#include "unit/http_client/exchange_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::engine {
namespace {

using test::FakeEngine;
using test::response;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(LegName, IsOfOneLengthSoThatNoneBeginsAnother) {
  EXPECT_EQ((LegName{.high = 0, .low = 1}).text(), "00000000000000000000000000000001");
  EXPECT_EQ((LegName{.high = ~0ULL, .low = 0}).text(), "ffffffffffffffff0000000000000000");
  EXPECT_FALSE(LegName{});
  EXPECT_TRUE((LegName{.high = 0, .low = 1}));
}

struct AbortTest : http_client::ExchangeFixture {
  void abort(const model::Endpoint& endpoint, std::string authorization) {
    run([&]() -> awaitable<void> {
      co_await abort_request(pool, {{1}, endpoint}, {.high = 0, .low = 5}, authorization);
    });
  }
};

TEST_F(AbortTest, NamesTheLegWithTheKeyItHad) {
  const FakeEngine engine(test::always(response(200, "")));
  abort(engine.endpoint(), "Bearer k");
  abort(engine.endpoint(), "");
  ASSERT_EQ(engine.aborts().size(), 2U);
  EXPECT_THAT(engine.aborts()[0].head, AllOf(StartsWith("POST /abort_request HTTP/1.1\r\n"),
                                             HasSubstr("\r\nContent-Type: application/json\r\n"),
                                             HasSubstr("\r\nAuthorization: Bearer k\r\n")));
  EXPECT_EQ(engine.aborts()[0].body, R"({"rid":"00000000000000000000000000000005"})");
  EXPECT_THAT(engine.aborts()[1].head, Not(HasSubstr("Authorization")));
}

TEST_F(AbortTest, FailsNobodyWhereItDoesNotArrive) { abort(test::closed_endpoint(), ""); }

}  // namespace
}  // namespace baton::engine
