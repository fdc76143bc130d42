// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http/client_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace baton::http {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr ClientLimits::Clock::time_point kStart{1h};
constexpr std::uint64_t kSeed = 7;

ClientId id_at(const char* address) {
  return ClientId::of_address(model::parse_address(address).value());
}
// The n-th of many.
ClientId address(std::uint64_t n) { return {.high = 0x2001'0db8'0000'0000 + n, .low = 0}; }

TEST(ClientId, IsAnIpv4AddressOrTheFirstHalfOfAnIpv6One) {
  EXPECT_EQ(id_at("192.0.2.1"), id_at("::ffff:192.0.2.1"));
  EXPECT_NE(id_at("192.0.2.1"), id_at("192.0.2.2"));
  EXPECT_EQ(id_at("2001:db8::1"), id_at("2001:db8::ffff:1"));
  EXPECT_NE(id_at("2001:db8:0:1::1"), id_at("2001:db8:0:2::1"));
  EXPECT_NE(id_at("::1"), id_at("0.0.0.1"));
  EXPECT_FALSE(id_at("192.0.2.1").is_key());
}

TEST(ClientId, OfAKeyIsThatOfNoOtherKeyAndNoAddress) {
  EXPECT_EQ(ClientId::of_key(1), ClientId::of_key(1));
  EXPECT_NE(ClientId::of_key(1), ClientId::of_key(2));
  EXPECT_NE(ClientId::of_key(1), id_at("0.0.0.1"));
  EXPECT_NE(ClientId::of_key(1), id_at("::1"));
  EXPECT_TRUE(ClientId::of_key(1).is_key());
}

TEST(ClientLimits, LimitNothingThatIsNotSet) {
  ClientLimits limits({}, kSeed);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(limits.connect(address(1), kStart));
    EXPECT_TRUE(limits.admit(address(1), kStart));
  }
  EXPECT_EQ(limits.size(), 0U) << "and remember nobody";
}

TEST(ClientLimits, EachClientHasSoManyRequestsAtATime) {
  ClientLimits limits({.requests = 2}, kSeed);
  auto first = limits.admit(address(1), kStart);
  const auto second = limits.admit(address(1), kStart);
  EXPECT_TRUE(first && second);
  const auto third = limits.admit(address(1), kStart);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code(), Errc::RateLimited);
  EXPECT_EQ(third.error().limit(), Limit::ClientRequests);
  EXPECT_EQ(third.error().retry_after(), 1s);
  EXPECT_EQ(third.error().figures(), R"({"limit_kind":"client_requests","current":2,"limit":2})");
  EXPECT_THAT(third.error().message(), HasSubstr("this address has already 2 requests running"));
  EXPECT_TRUE(limits.admit(address(2), kStart)) << "another one has its own";
  first->reset();
  EXPECT_TRUE(limits.admit(address(1), kStart));
}

TEST(ClientLimits, EachClientHasSoManyConnections) {
  ClientLimits limits({.connections = 1}, kSeed);
  auto open = limits.connect(address(1), kStart);
  EXPECT_TRUE(open);
  const auto more = limits.connect(address(1), kStart);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().limit(), Limit::ClientConnections);
  EXPECT_EQ(more.error().figures(), R"({"limit_kind":"client_connections","current":1,"limit":1})");
  EXPECT_TRUE(limits.connect(address(2), kStart));
  open->reset();
  EXPECT_TRUE(limits.connect(address(1), kStart));
}

TEST(ClientLimits, EachClientHasItsRate) {
  ClientLimits limits({.rate = 0.5, .burst = 2}, kSeed);
  const ClientId key = ClientId::of_key(1);
  EXPECT_TRUE(limits.admit(key, kStart));
  EXPECT_TRUE(limits.admit(key, kStart));
  const auto third = limits.admit(key, kStart + 500ms);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().limit(), Limit::ClientRate);
  EXPECT_EQ(third.error().retry_after(), 2s) << "never sooner than there is room";
  EXPECT_EQ(third.error().figures(), R"({"limit_kind":"client_rate","wait_ms":1500,"limit":0.5})");
  EXPECT_THAT(third.error().message(), HasSubstr("this API key"));
  EXPECT_TRUE(limits.admit(ClientId::of_key(2), kStart + 500ms));
  EXPECT_TRUE(limits.admit(key, kStart + 500ms + *third.error().retry_after()));
}

TEST(ClientLimits, ARequestTooManyCostsNothingOfTheRate) {
  ClientLimits limits({.requests = 1, .rate = 1, .burst = 2}, kSeed);
  auto running = limits.admit(address(1), kStart);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(limits.admit(address(1), kStart));
  running->reset();
  EXPECT_TRUE(limits.admit(address(1), kStart));
}

TEST(ClientLimits, ForgetWhoHasNothingOpenAndOwesNothing) {
  ClientLimits counted({.connections = 1, .requests = 1}, kSeed);
  {
    const auto connection = counted.connect(address(1), kStart);
    const auto request = counted.admit(address(1), kStart);
    EXPECT_EQ(counted.size(), 1U);
  }
  EXPECT_EQ(counted.size(), 0U);

  ClientLimits rated({.rate = 1}, kSeed);
  for (std::uint64_t n = 0; n < 10'000; ++n) EXPECT_TRUE(rated.admit(address(n), kStart));
  EXPECT_EQ(rated.size(), 10'000U);
  for (std::uint64_t n = 0; n < 10'000; ++n)
    EXPECT_TRUE(rated.admit(address(20'000 + n), kStart + 1s));
  EXPECT_LT(rated.size(), 11'000U) << "as new ones come, whole rates go";
}

constexpr std::size_t kFew = 640;  // ten in each part of the table

TEST(ClientLimits, RememberNoMoreRatesThanTheyAreTold) {
  ClientLimits limits({.rate = 0.001}, kSeed, kFew);
  for (std::uint64_t n = 0; n < 100'000; ++n) EXPECT_TRUE(limits.admit(address(n), kStart));
  EXPECT_LE(limits.size(), kFew);
  EXPECT_GT(limits.size(), kFew / 2);
}

TEST(ClientLimits, NeverForgetWhatIsOpenHoweverManyOthersCome) {
  ClientLimits limits({.connections = 1, .requests = 1, .rate = 0.001, .burst = 100}, kSeed, kFew);
  std::vector<ClientLimits::Connection> connections;
  for (std::uint64_t n = 0; n < 10 * kFew; ++n)
    connections.push_back(limits.connect(address(n), kStart).value());
  const auto running = limits.admit(address(0), kStart);
  EXPECT_EQ(limits.size(), 10 * kFew);
  for (std::uint64_t n = 0; n < 100'000; ++n)
    EXPECT_TRUE(limits.admit(address(1'000'000 + n), kStart)) << "nobody is locked out";
  for (std::uint64_t n = 0; n < 10 * kFew; ++n) EXPECT_FALSE(limits.connect(address(n), kStart));
  EXPECT_FALSE(limits.admit(address(0), kStart));
  connections.clear();
  EXPECT_LE(limits.size(), kFew + 1);
}

TEST(ClientLimits, AClientThatGoesOnIsNotForgottenForOthers) {
  ClientLimits limits({.rate = 0.001}, kSeed, kFew);
  EXPECT_TRUE(limits.admit(address(0), kStart));
  for (std::uint64_t n = 1; n < 20'000; ++n) {
    EXPECT_TRUE(limits.admit(address(n), kStart));
    if (n % 50 == 0) EXPECT_FALSE(limits.admit(address(0), kStart)) << n;
  }
}

TEST(ClientLimits, CountRightFromSeveralThreads) {
  ClientLimits limits({.connections = 3, .requests = 2}, kSeed);
  std::atomic<int> requests{0};
  std::atomic<int> most{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2'000; ++i) {
        const auto connection = limits.connect(address(1), kStart);
        const auto other = limits.admit(address(static_cast<std::uint64_t>(i) + 2), kStart);
        const auto request = limits.admit(address(1), kStart);
        if (!request) continue;
        const int now = ++requests;
        int seen = most.load();
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        --requests;
      }
    });
  }
  threads.clear();
  EXPECT_LE(most, 2);
  EXPECT_EQ(limits.size(), 0U);
}

}  // namespace
}  // namespace baton::http
