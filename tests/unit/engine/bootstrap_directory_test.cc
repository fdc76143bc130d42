// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/bootstrap_directory.h"

#include "unit/engine/exchange_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace baton::engine {
namespace {

using test::FakeEngine;
using test::response;
using testing::StartsWith;

struct BootstrapDirectoryTest : ExchangeFixture {
  using Found = Result<std::optional<std::uint16_t>>;
  Found ask(const model::Endpoint& endpoint, std::uint64_t id = 1) {
    const model::WorkerSpec spec{endpoint, model::Engine::Sglang, model::Role::Prefill, configured};
    Found found;
    run([&]() -> awaitable<void> { found = co_await directory.find_port({id}, spec); });
    return found;
  }
  std::optional<std::uint16_t> find(const model::Endpoint& endpoint, std::uint64_t id = 1) {
    const Found found = ask(endpoint, id);
    EXPECT_TRUE(found.has_value());
    return found.value_or(std::nullopt);
  }
  std::optional<std::uint16_t> configured;
  BootstrapDirectory directory{pool, timeouts};
};

TEST_F(BootstrapDirectoryTest, BelievesTheConfigurationWithoutAsking) {
  configured = 9000;
  EXPECT_EQ(find(test::closed_endpoint()), 9000);
}

TEST_F(BootstrapDirectoryTest, AsksTheWorkerOnce) {
  const FakeEngine worker(test::always(
      response(200, R"({"version":"0.5","disaggregation_bootstrap_port":8998,"x":[]})")));
  EXPECT_EQ(find(worker.endpoint()), 8998);
  EXPECT_EQ(find(worker.endpoint()), 8998);
  ASSERT_EQ(worker.requests().size(), 1U);
  EXPECT_THAT(worker.requests()[0].head, StartsWith("GET /server_info HTTP/1.1\r\n"));
}

TEST_F(BootstrapDirectoryTest, AsksAgainAboutAWorkerThatWasLost) {
  const FakeEngine worker(test::always(response(200, R"({"disaggregation_bootstrap_port":1})")));
  EXPECT_EQ(find(worker.endpoint()), 1);
  directory.forget({2});
  EXPECT_EQ(find(worker.endpoint()), 1);
  EXPECT_EQ(worker.requests().size(), 1U);
  directory.forget({1});
  EXPECT_EQ(find(worker.endpoint()), 1);
  EXPECT_EQ(worker.requests().size(), 2U);
}

TEST_F(BootstrapDirectoryTest, LeavesThePortOpenWhereTheWorkerDoesNotSay) {
  std::uint64_t id = 10;
  for (const std::string& answer :
       {response(404, R"({"disaggregation_bootstrap_port":8998})"), response(200, "{}"),
        response(200, "no JSON"), response(200, R"({"disaggregation_bootstrap_port":null})"),
        response(200, R"({"disaggregation_bootstrap_port":0})"),
        response(200, R"({"disaggregation_bootstrap_port":-1})"),
        response(200, R"({"disaggregation_bootstrap_port":65536})"),
        response(200, R"({"disaggregation_bootstrap_port":"8998"})"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 99\r\nConnection: close\r\n\r\n{")}) {
    const FakeEngine worker([&](test::FakePeer& peer) {
      peer.read_request();
      peer.write(answer);
    });
    EXPECT_EQ(find(worker.endpoint(), ++id), std::nullopt) << answer;
  }
}

TEST_F(BootstrapDirectoryTest, SaysThatTheWorkerIsNotThere) {
  const Found found = ask(test::closed_endpoint());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), Errc::EngineUnreachable);
}

TEST_F(BootstrapDirectoryTest, TakesTheLargestPortThereIs) {
  const FakeEngine worker(
      test::always(response(200, R"({"disaggregation_bootstrap_port":65535})")));
  EXPECT_EQ(find(worker.endpoint()), 65535);
}

}  // namespace
}  // namespace baton::engine
