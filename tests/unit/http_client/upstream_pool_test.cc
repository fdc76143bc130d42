// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http_client/upstream_pool.h"

#include "http_client/exchange.h"
#include "support/no_descriptors.h"
#include "unit/http_client/exchange_fixture.h"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace baton::http_client {
namespace {

using test::FakeEngine;
using test::FakePeer;

struct UpstreamPoolTest : ExchangeFixture {
  std::unique_ptr<Upstream> connect(const model::Endpoint& endpoint) {
    std::unique_ptr<Upstream> made;
    run([&]() -> awaitable<void> {
      auto connected = co_await pool.connect({{1}, endpoint}, nullptr);
      if (connected) {
        made = std::move(*connected);
      } else {
        problem = connected.error();
      }
    });
    return made;
  }
  std::unique_ptr<Upstream> take(std::uint64_t worker) {
    const model::Endpoint endpoint;
    return pool.take_idle({{worker}, endpoint});
  }
  std::optional<Error> problem;
  FakeEngine quiet{[](FakePeer& peer) { peer.wait_for_drop(); }};
};

TEST_F(UpstreamPoolTest, GivesAConnectionToTheWorkerItBelongsToOnly) {
  EXPECT_EQ(take(1), nullptr);
  auto made = connect(quiet.endpoint());
  const Upstream* const address = made.get();
  pool.give_back({1}, std::move(made));
  EXPECT_EQ(take(2), nullptr);
  EXPECT_EQ(take(1).get(), address);
  EXPECT_EQ(take(1), nullptr);
}

TEST_F(UpstreamPoolTest, GivesTheOneUsedLastFirst) {
  auto first = connect(quiet.endpoint());
  auto second = connect(quiet.endpoint());
  const Upstream* const used_last = second.get();
  pool.give_back({1}, std::move(first));
  pool.give_back({1}, std::move(second));
  EXPECT_EQ(take(1).get(), used_last);
}

TEST_F(UpstreamPoolTest, KeepsNoMoreThanItMay) {
  std::vector<std::unique_ptr<Upstream>> made;
  for (std::size_t i = 0; i < kIdleLimit + 1; ++i) made.push_back(connect(quiet.endpoint()));
  for (auto& upstream : made) pool.give_back({1}, std::move(upstream));
  EXPECT_TRUE(quiet.wait_for_drops(1));
  for (std::size_t i = 0; i < kIdleLimit; ++i) EXPECT_NE(take(1), nullptr);
  EXPECT_EQ(take(1), nullptr);
}

TEST_F(UpstreamPoolTest, GivesNoConnectionThatItsWorkerHasClosed) {
  FakeEngine closing([](FakePeer& peer) { peer.wait_for_proceed(); });
  auto made = connect(closing.endpoint());
  net::Connection& connection = made->connection;
  closing.proceed();
  run_until([&] { return connection.stale(); });
  pool.give_back({1}, std::move(made));
  EXPECT_EQ(take(1), nullptr);
}

// Regression: one that had rested for less than half a second was not looked at.
TEST_F(UpstreamPoolTest, GivesNoConnectionOnWhichItsWorkerSpokeUnasked) {
  FakeEngine talking([](FakePeer& peer) {
    peer.wait_for_proceed();
    peer.write("\r\n");
    peer.wait_for_drop();
  });
  auto made = connect(talking.endpoint());
  net::Connection& connection = made->connection;
  talking.proceed();
  run_until([&] { return connection.stale(); });
  auto silent = connect(quiet.endpoint());
  const Upstream* const usable = silent.get();
  pool.give_back({1}, std::move(silent));
  pool.give_back({1}, std::move(made));
  EXPECT_EQ(take(1).get(), usable) << "the one behind it is given out";
  EXPECT_TRUE(talking.wait_for_drops(1)) << "it is closed";
}

TEST_F(UpstreamPoolTest, LetsGoOfWhatItsWorkerHasClosedEvenIfNobodyAsks) {
  FakeEngine closing([](FakePeer& peer) { peer.wait_for_proceed(); });
  auto made = connect(closing.endpoint());
  net::Connection& connection = made->connection;
  closing.proceed();
  run_until([&] { return connection.stale(); });
  pool.give_back({1}, std::move(made));
  EXPECT_EQ(pool.idle_count(), 1U);
  pool.sweep();
  EXPECT_EQ(pool.idle_count(), 0U);
}

TEST_F(UpstreamPoolTest, SaysWhoCannotBeReached) {
  const model::Endpoint nobody = test::closed_endpoint();
  EXPECT_EQ(connect(nobody), nullptr);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->code(), Errc::EngineUnreachable);
  EXPECT_NE(problem->message().find(nobody.to_string()), std::string::npos) << problem->message();
  EXPECT_EQ(problem->cause(), std::errc::connection_refused);
}

TEST_F(UpstreamPoolTest, TellsAHostThatCannotBeFoundFromOneWhereNobodyListens) {
  // No name server is asked for a name this long.
  EXPECT_EQ(connect({std::string(300, 'x'), 1}), nullptr);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->code(), Errc::EngineUnreachable);
  EXPECT_EQ(problem->cause(), std::nullopt);
}

TEST_F(UpstreamPoolTest, ResolvesNames) {
  EXPECT_NE(connect({"localhost", quiet.endpoint().port}), nullptr);
  EXPECT_EQ(connect({"no-such-host.invalid", 80}), nullptr);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->code(), Errc::EngineUnreachable);
}

struct NamedWorkerTest : UpstreamPoolTest {
  UpstreamPool pool_with(std::chrono::milliseconds connect_timeout, Resolver::Lookup lookup) {
    return {io,
            deadlines,
            {.connect_timeout = connect_timeout,
             .idle_per_worker = kIdleLimit,
             .header_bytes = 16 * 1024,
             .lookup = std::move(lookup)}};
  }
  // How connecting to the worker by name ends.
  std::optional<Error> connect_by_name(UpstreamPool& by_name, std::uint16_t port,
                                       Cancellation* cancellation = nullptr) {
    std::optional<Error> failed;
    run([&]() -> awaitable<void> {
      const model::Endpoint endpoint{"worker", port};
      const auto connected = co_await by_name.connect({{1}, endpoint}, cancellation);
      if (!connected) failed = connected.error();
    });
    return failed;
  }
};

// Regression: the time to connect and the client's cancellation waited for the name server.
TEST_F(NamedWorkerTest, ANameServerThatDoesNotAnswerDelaysNoError) {
  std::vector<Resolver::Done> asked;
  const auto silent = [&](const std::string&, Resolver::Done done) {
    asked.push_back(std::move(done));
  };
  UpstreamPool hasty = pool_with(std::chrono::milliseconds(20), silent);
  const auto late = connect_by_name(hasty, 1);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->code(), Errc::EngineUnreachable);
  EXPECT_NE(late->message().find("no connection within 20 ms"), std::string::npos)
      << late->message();

  Cancellation cancellation;
  UpstreamPool patient =
      pool_with(std::chrono::hours(1), [&](const std::string& host, Resolver::Done done) {
        silent(host, std::move(done));
        boost::asio::post(io, [&] { cancellation.request(Error(Errc::ClientGone, "gone")); });
      });
  const auto cancelled = connect_by_name(patient, 1, &cancellation);
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->code(), Errc::ClientGone);
  EXPECT_EQ(asked.size(), 2U);
}

TEST_F(NamedWorkerTest, AnAddressThatDoesNotAnswerIsLookedUpAgain) {
  int lookups = 0;
  UpstreamPool by_name =
      pool_with(std::chrono::seconds(5), [&](const std::string& host, const Resolver::Done& done) {
        EXPECT_EQ(host, "worker");
        ++lookups;
        done({.error = {}, .addresses = {boost::asio::ip::make_address("127.0.0.1")}});
      });
  EXPECT_FALSE(connect_by_name(by_name, quiet.endpoint().port));
  EXPECT_FALSE(connect_by_name(by_name, quiet.endpoint().port));
  EXPECT_EQ(lookups, 1);
  EXPECT_TRUE(connect_by_name(by_name, test::closed_endpoint().port));
  EXPECT_EQ(lookups, 1);
  EXPECT_FALSE(connect_by_name(by_name, quiet.endpoint().port));
  EXPECT_EQ(lookups, 2);
}

TEST_F(UpstreamPoolTest, DoesNotCallAWorkerUnreachableWhereThisMachineHasNoDescriptors) {
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    problem.reset();
    {
      const test::NoDescriptors none;
      EXPECT_EQ(connect({host, quiet.endpoint().port}), nullptr);
    }
    ASSERT_TRUE(problem);
    EXPECT_EQ(problem->code(), Errc::OutOfResources) << problem->message();
    EXPECT_EQ(problem->cause(), std::nullopt);
    EXPECT_EQ(problem->limit(), Limit::Descriptors);
    EXPECT_EQ(problem->retry_after(), std::chrono::seconds(1));
  }
  EXPECT_NE(connect(quiet.endpoint()), nullptr);
}

TEST_F(UpstreamPoolTest, IdleConnectionsMakeRoomForOneThatIsNeeded) {
  const FakeEngine other([](FakePeer& peer) { peer.wait_for_drop(); });
  pool.give_back({1}, connect(quiet.endpoint()));
  run_until([this] { return quiet.connections() == 1; });
  {
    const test::NoDescriptors none;
    EXPECT_NE(connect(other.endpoint()), nullptr);
  }
  EXPECT_EQ(problem, std::nullopt);
  EXPECT_EQ(pool.idle_count(), 0U);
}

TEST_F(UpstreamPoolTest, KeepsNoDescriptorThatItsUseMayNotHave) {
  std::vector<std::string> warnings;
  net::DescriptorBudget nothing(0, [&](auto what) { warnings.emplace_back(what); });
  UpstreamPool strict(io, deadlines,
                      {.connect_timeout = std::chrono::seconds(5),
                       .idle_per_worker = kIdleLimit,
                       .header_bytes = 1024,
                       .descriptors = &nothing});
  const model::Endpoint endpoint = quiet.endpoint();
  connect(endpoint);  // what the first one makes besides itself stays
  ASSERT_TRUE(quiet.wait_for_drops(1));
  const auto before = net::lowest_free_descriptor(STDERR_FILENO);
  run([&]() -> awaitable<void> {
    const auto connected = co_await strict.connect({{1}, endpoint}, nullptr);
    EXPECT_FALSE(connected);
    if (!connected) EXPECT_EQ(connected.error().code(), Errc::OutOfResources);
  });
  // Engines are in this process, too: one may not have closed its side yet, then or now.
  run_until([&] { return net::lowest_free_descriptor(STDERR_FILENO) <= before; });
  EXPECT_EQ(warnings.size(), 1U);
}

TEST_F(UpstreamPoolTest, LetsIdleConnectionsGoAfterSomebodyWentShort) {
  net::DescriptorBudget budget(20'000);
  UpstreamPool sharing(io, deadlines,
                       {.connect_timeout = std::chrono::seconds(5),
                        .idle_per_worker = kIdleLimit,
                        .header_bytes = 1024,
                        .descriptors = &budget});
  const model::Endpoint endpoint = quiet.endpoint();
  run([&]() -> awaitable<void> {
    auto connected = co_await sharing.connect({{1}, endpoint}, nullptr);
    EXPECT_TRUE(connected);
    if (connected) sharing.give_back({1}, std::move(*connected));
  });
  sharing.sweep();
  EXPECT_EQ(sharing.idle_count(), 1U);
  budget.went_short("another thread's request");
  sharing.sweep();
  EXPECT_EQ(sharing.idle_count(), 0U);
}

TEST_F(UpstreamPoolTest, StopsConnectingForARequestThatIsCancelled) {
  Cancellation cancellation;
  cancellation.request(Error(Errc::ClientGone, "left"));
  const model::Endpoint endpoint = quiet.endpoint();
  run([&]() -> awaitable<void> {
    const auto connected = co_await pool.connect({{1}, endpoint}, &cancellation);
    EXPECT_FALSE(connected);
    if (!connected) EXPECT_EQ(connected.error().code(), Errc::ClientGone);
  });
}

TEST_F(UpstreamPoolTest, ShutDownEndsWhatIsUnderWayAndWhatWouldCome) {
  FakeEngine busy([](FakePeer& peer) {
    peer.read_request();
    peer.wait_for_drop();
  });
  pool.give_back({1}, connect(quiet.endpoint()));
  const model::Endpoint endpoint = busy.endpoint();
  bool ended = false;
  start([&]() -> awaitable<void> {
    Exchange exchange(pool, {{2}, endpoint}, timeouts);
    EXPECT_FALSE(co_await exchange.send(kHead, body));
    ended = true;
  });
  run_until([&] { return busy.requests().size() == 1; });
  pool.shut_down();
  run_until([&] { return ended; });
  EXPECT_TRUE(busy.wait_for_drops(1));
  EXPECT_TRUE(quiet.wait_for_drops(1)) << "idle connections are closed";

  EXPECT_EQ(connect(quiet.endpoint()), nullptr);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->code(), Errc::ShuttingDown);
}

}  // namespace
}  // namespace baton::http_client
