// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/health_check.h"

#include "support/no_descriptors.h"
#include "unit/http_client/exchange_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace baton::engine {
namespace {

using namespace std::chrono_literals;
using model::Engine;
using test::FakeEngine;
using test::response;
using testing::HasSubstr;
using testing::StartsWith;

struct HealthCheckTest : http_client::ExchangeFixture {
  HealthResult check(const model::Endpoint& endpoint, Engine engine = Engine::Vllm,
                     std::chrono::milliseconds timeout = 5s) {
    model::WorkerSpec spec;
    spec.endpoint = endpoint;
    spec.engine = engine;
    HealthResult result{};
    run([&]() -> awaitable<void> {
      result = co_await check_health(pool, {{1}, spec.endpoint}, spec, timeout);
    });
    return result;
  }
};

TEST_F(HealthCheckTest, AsksForHealth) {
  const FakeEngine engine(test::always(response(200, "")));
  for (const Engine kind : {Engine::Vllm, Engine::Sglang, Engine::Trtllm})
    EXPECT_EQ(check(engine.endpoint(), kind).health, Health::Answers);
  for (const auto& request : engine.requests())
    EXPECT_THAT(request.head, StartsWith("GET /health HTTP/1.1\r\n"));
  EXPECT_EQ(engine.requests().size(), 3U);
  EXPECT_EQ(engine.connections(), 1U);
}

TEST_F(HealthCheckTest, TellsNotYetFromThere) {
  const std::pair<int, Health> cases[] = {{200, Health::Answers}, {401, Health::Answers},
                                          {404, Health::Answers}, {500, Health::NotYet},
                                          {502, Health::NotYet},  {503, Health::NotYet}};
  for (const auto& [status, health] : cases) {
    const FakeEngine engine(test::always(response(status, "x", "Connection: close\r\n")));
    const HealthResult result = check(engine.endpoint());
    EXPECT_EQ(result.health, health) << status;
    EXPECT_THAT(result.text, HasSubstr(std::to_string(status)));
    EXPECT_THAT(result.text, HasSubstr(engine.endpoint().to_string()));
  }
}

TEST_F(HealthCheckTest, TellsNothingOfAWorkerWhereThisMachineHasNoDescriptors) {
  const FakeEngine engine(test::always(response(200, "")));
  const test::NoDescriptors none;
  EXPECT_EQ(check(engine.endpoint()).health, Health::NotAsked);
}

TEST_F(HealthCheckTest, TellsThatNobodyListens) {
  const auto nobody = test::closed_endpoint();
  const HealthResult result = check(nobody);
  EXPECT_EQ(result.health, Health::Refused);
  EXPECT_THAT(result.text, HasSubstr(nobody.to_string()));
}

// The engine is gone, and a kept connection to it is still in the pool.
TEST_F(HealthCheckTest, TellsThatNobodyListensAnyMore) {
  model::Endpoint endpoint;
  {
    const FakeEngine engine(test::always(response(200, "")));
    endpoint = engine.endpoint();
    EXPECT_EQ(check(endpoint).health, Health::Answers);
  }
  EXPECT_EQ(check(endpoint).health, Health::Refused);
}

TEST_F(HealthCheckTest, TellsSilenceAndBrokenAnswers) {
  const FakeEngine silent([](test::FakePeer& peer) { peer.wait_for_drop(); });
  EXPECT_EQ(check(silent.endpoint(), Engine::Vllm, 50ms).health, Health::Unreachable);
  EXPECT_EQ(check(silent.endpoint(), Engine::Trtllm, 50ms).health, Health::Unreachable);
  for (const char* bytes :
       {"", "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"}) {
    const FakeEngine broken([bytes](test::FakePeer& peer) {
      peer.read_request();
      peer.write(bytes);
    });
    EXPECT_EQ(check(broken.endpoint()).health, Health::Unreachable) << bytes;
  }
}

// It looks for its token once a second, so an answer that takes that long is a good one.
TEST_F(HealthCheckTest, HasTheTimeoutThatSglangNeeds) {
  FakeEngine engine([](test::FakePeer& peer) {
    peer.read_request();
    peer.wait_for_proceed();
    peer.write(response(200, ""));
  });
  model::WorkerSpec spec;
  spec.endpoint = engine.endpoint();
  spec.engine = Engine::Sglang;
  std::optional<Health> health;
  start([&]() -> awaitable<void> {
    health = (co_await check_health(pool, {{1}, spec.endpoint}, spec, 1ms)).health;
  });
  run_for(1100ms);
  EXPECT_EQ(health, std::nullopt);
  engine.proceed();
  run_until([&] { return health.has_value(); });
  EXPECT_EQ(health, Health::Answers);
}

TEST_F(HealthCheckTest, NamesItsResults) {
  EXPECT_EQ(to_string(Health::Answers), "answers");
  EXPECT_EQ(to_string(Health::NotYet), "not_yet");
  EXPECT_EQ(to_string(Health::Refused), "refused");
  EXPECT_EQ(to_string(Health::Unreachable), "unreachable");
  EXPECT_EQ(to_string(Health::NotAsked), "not_asked");
}

}  // namespace
}  // namespace baton::engine
