// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http_client/resolver.h"

#include "support/io_fixture.h"

#include <boost/asio/error.hpp>
#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::http_client {
namespace {

using boost::asio::ip::make_address;
using testing::ElementsAre;
using testing::IsEmpty;

class ResolverTest : public test::IoFixture {
 protected:
  struct Waiting {
    explicit Waiting(boost::asio::io_context& io) : wait(io) {}
    Resolver::Wait wait;
    std::optional<Resolver::Found> found;
  };
  std::shared_ptr<Waiting> resolve(const std::string& host) {
    const auto waiting = std::make_shared<Waiting>(io);
    start([this, waiting, host]() -> test::awaitable<void> {
      waiting->found = co_await resolver->resolve(host, waiting->wait);
    });
    go_on();
    return waiting;
  }
  void go_on() {
    io.restart();
    io.poll();
  }
  // The name server answers the oldest question.
  void answer(Resolver::Found found) {
    const auto done = std::move(asked.front().second);
    asked.erase(asked.begin());
    done(std::move(found));
    go_on();
  }
  static Resolver::Found at(const char* address) { return {{}, {make_address(address)}}; }

  std::vector<std::pair<std::string, Resolver::Done>> asked;
  Resolver::Clock::time_point now;
  std::unique_ptr<Resolver> resolver = std::make_unique<Resolver>(
      [this](const std::string& host, Resolver::Done done) {
        asked.emplace_back(host, std::move(done));
      },
      [this] { return now; });
};

TEST_F(ResolverTest, ReturnsWhatTheLookupFinds) {
  const auto one = resolve("worker");
  EXPECT_FALSE(one->found);
  answer(at("10.0.0.1"));
  ASSERT_TRUE(one->found);
  EXPECT_FALSE(one->found->error);
  EXPECT_THAT(one->found->addresses, ElementsAre(make_address("10.0.0.1")));
}

TEST_F(ResolverTest, AnAddressNeedsNoLookup) {
  const auto one = resolve("::1");
  ASSERT_TRUE(one->found);
  EXPECT_THAT(one->found->addresses, ElementsAre(make_address("::1")));
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(ResolverTest, AnAbandonedWaitEndsWithoutTheLookup) {
  const auto one = resolve("worker");
  const auto other = resolve("worker");
  one->wait.abandon();
  go_on();
  ASSERT_TRUE(one->found);
  EXPECT_EQ(one->found->error, boost::asio::error::operation_aborted);
  EXPECT_FALSE(other->found) << "it still waits";
  answer(at("10.0.0.1"));
  EXPECT_TRUE(other->found);
  EXPECT_TRUE(resolve("worker")->found) << "the result was kept";
}

TEST_F(ResolverTest, AWaitThatWasAbandonedBeforeItBeganDoesNotBegin) {
  const auto waiting = std::make_shared<Waiting>(io);
  waiting->wait.abandon();
  start([&]() -> test::awaitable<void> {
    waiting->found = co_await resolver->resolve("worker", waiting->wait);
  });
  go_on();
  ASSERT_TRUE(waiting->found);
  EXPECT_EQ(waiting->found->error, boost::asio::error::operation_aborted);
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(ResolverTest, OneLookupServesAllWhoWaitForTheName) {
  const auto one = resolve("worker");
  const auto two = resolve("worker");
  const auto other = resolve("another");
  ASSERT_EQ(asked.size(), 2U);
  answer(at("10.0.0.1"));
  EXPECT_TRUE(one->found && two->found);
  EXPECT_FALSE(other->found);
  answer(at("10.0.0.2"));
  ASSERT_TRUE(other->found);
  EXPECT_THAT(other->found->addresses, ElementsAre(make_address("10.0.0.2")));
}

TEST_F(ResolverTest, AResultIsUsedAgainUntilItIsOldOrForgotten) {
  resolve("worker");
  answer(at("10.0.0.1"));
  now += Resolver::kFresh - std::chrono::milliseconds(1);
  EXPECT_TRUE(resolve("worker")->found);
  now += std::chrono::milliseconds(1);
  EXPECT_FALSE(resolve("worker")->found);
  answer(at("10.0.0.1"));
  resolver->forget("worker");
  EXPECT_FALSE(resolve("worker")->found);
  answer(at("10.0.0.1"));
}

TEST_F(ResolverTest, AFailureIsNotKept) {
  const auto one = resolve("worker");
  answer({.error = boost::asio::error::host_not_found, .addresses = {}});
  ASSERT_TRUE(one->found);
  EXPECT_EQ(one->found->error, boost::asio::error::host_not_found);
  EXPECT_FALSE(resolve("worker")->found);
  answer(at("10.0.0.1"));
}

TEST_F(ResolverTest, ALookupMayEndAfterTheResolver) {
  const auto one = resolve("worker");
  one->wait.abandon();
  go_on();
  resolver.reset();
  answer(at("10.0.0.1"));
  EXPECT_EQ(one->found->error, boost::asio::error::operation_aborted);
}

TEST_F(ResolverTest, TheSystemKnowsThisMachine) {
  Resolver system(io);
  run([&]() -> test::awaitable<void> {
    Resolver::Wait wait(io);
    const Resolver::Found found = co_await system.resolve("localhost", wait);
    EXPECT_FALSE(found.error) << found.error.message();
    EXPECT_FALSE(found.addresses.empty());
    for (const auto& address : found.addresses) EXPECT_TRUE(address.is_loopback()) << address;
  });
}

}  // namespace
}  // namespace baton::http_client
