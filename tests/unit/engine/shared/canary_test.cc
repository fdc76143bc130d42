// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/canary.h"

#include "unit/http_client/exchange_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace baton::engine {
namespace {

using model::Engine;
using model::Role;
using test::FakeEngine;
using test::response;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kCompletion =
    R"({"id":"cmpl-1","object":"text_completion","choices":[{"index":0,"text":" a","finish_reason":"length"}]})";

struct CanaryTest : http_client::ExchangeFixture {
  Result<CanaryOutcome> send(const model::Endpoint& endpoint, Engine engine = Engine::Vllm,
                             Role role = Role::Aggregated, std::string_view authorization = {}) {
    model::WorkerSpec spec;
    spec.endpoint = endpoint;
    spec.engine = engine;
    spec.role = role;
    const std::string model = "a \"model\"";
    Result<CanaryOutcome> outcome;
    run([&]() -> awaitable<void> {
      outcome =
          co_await send_canary(pool, {{5}, spec.endpoint}, model, spec, timeouts, authorization);
    });
    return outcome;
  }
  Error failure(const std::string& answer, Engine engine = Engine::Vllm,
                Role role = Role::Aggregated) {
    const FakeEngine worker(test::always(answer));
    const auto outcome = send(worker.endpoint(), engine, role);
    EXPECT_FALSE(outcome) << answer;
    return outcome ? Error(Errc::Internal, "") : outcome.error();
  }
};

TEST_F(CanaryTest, IsATinyCompletion) {
  const FakeEngine engine(test::always(response(200, kCompletion)));
  EXPECT_EQ(send(engine.endpoint()), CanaryOutcome::Served);
  const auto seen = engine.requests().at(0);
  EXPECT_THAT(seen.head, StartsWith("POST /v1/completions HTTP/1.1\r\n"));
  EXPECT_THAT(seen.head, HasSubstr("\r\nContent-Type: application/json\r\n"));
  EXPECT_THAT(seen.head, HasSubstr("\r\nx-request-id: canary-5-"));
  EXPECT_THAT(seen.head, Not(HasSubstr("Authorization")));
  const nlohmann::json body = nlohmann::json::parse(seen.body);
  EXPECT_EQ(body,
            (nlohmann::json{
                {"model", "a \"model\""}, {"prompt", "Hi"}, {"max_tokens", 1}, {"stream", false}}));
}

TEST_F(CanaryTest, IsTheSameForWorkersThatServePlainRequestsInTheirRole) {
  const FakeEngine engine(test::always(response(200, kCompletion)));
  std::size_t sent = 0;
  for (const Engine kind : {Engine::Vllm, Engine::Trtllm}) {
    for (const Role role : {Role::Prefill, Role::Decode, Role::Aggregated}) {
      EXPECT_EQ(send(engine.endpoint(), kind, role), CanaryOutcome::Served);
      ++sent;
    }
  }
  EXPECT_EQ(send(engine.endpoint(), Engine::Sglang), CanaryOutcome::Served);
  ASSERT_EQ(engine.requests().size(), sent + 1);
  for (const auto& request : engine.requests())
    EXPECT_THAT(request.head, StartsWith("POST /v1/completions "));
}

TEST_F(CanaryTest, LeavesTheRequestToSglangWhereItsRoleTakesNone) {
  const FakeEngine engine(test::always(response(200, "")));
  for (const Role role : {Role::Prefill, Role::Decode})
    EXPECT_EQ(send(engine.endpoint(), Engine::Sglang, role), CanaryOutcome::Served);
  for (const auto& request : engine.requests()) {
    EXPECT_THAT(request.head, StartsWith("GET /health_generate HTTP/1.1\r\n"));
    EXPECT_EQ(request.body, "");
  }
}

TEST_F(CanaryTest, TakesPushBackForNoFailure) {
  for (const int status : {429, 503}) {
    const FakeEngine engine(test::always(response(status, R"({"error":{"message":"full"}})")));
    EXPECT_EQ(send(engine.endpoint()), CanaryOutcome::PushedBack) << status;
  }
}

// That path knows no capacity: 503 is a worker whose token did not come.
TEST_F(CanaryTest, TakesAHealthCheckOf503ForAFailure) {
  const Error error = failure(response(503, ""), Engine::Sglang, Role::Decode);
  EXPECT_EQ(error.code(), Errc::EngineFailed);
  EXPECT_THAT(error.message(), HasSubstr("/health_generate with status 503"));
}

TEST_F(CanaryTest, TellsThatAKeyIsMissing) {
  for (const int status : {401, 403}) {
    const FakeEngine engine(test::always(response(status, R"({"error":"Unauthorized"})")));
    EXPECT_EQ(send(engine.endpoint()), CanaryOutcome::KeyRefused) << status;
  }
  const FakeEngine engine(test::always(response(200, kCompletion)));
  EXPECT_EQ(send(engine.endpoint(), Engine::Vllm, Role::Decode, "Bearer key"),
            CanaryOutcome::Served);
  EXPECT_THAT(engine.requests().at(0).head, HasSubstr("\r\nAuthorization: Bearer key\r\n"));
}

TEST_F(CanaryTest, FailsOnWhatIsNoCompletion) {
  for (const char* body : {"", "no JSON", "[]", "{}", R"({"choices":[]})", R"({"choices":[{}]})",
                           R"({"choices":[{"finish_reason":null}]})"}) {
    const Error error = failure(response(200, body));
    EXPECT_EQ(error.code(), Errc::EngineProtocol) << body;
    EXPECT_THAT(error.message(), HasSubstr("canary"));
  }
  EXPECT_EQ(failure(response(200, R"({"choices":[{"finish_reason":"abort"}]})")).code(),
            Errc::EngineFailed);
}

TEST_F(CanaryTest, FailsWithTheEnginesOwnWords) {
  const Error missing = failure(response(404, R"({"error":{"message":"no such model"}})"));
  EXPECT_EQ(missing.code(), Errc::EngineRejected);
  EXPECT_EQ(missing.message(), "no such model");
  EXPECT_EQ(failure(response(500, "{}")).code(), Errc::EngineFailed);
}

TEST_F(CanaryTest, FailsWhereNobodyAnswers) {
  const auto nobody = send(test::closed_endpoint());
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code(), Errc::EngineUnreachable);
  timeouts.first_byte = std::chrono::milliseconds(50);
  const FakeEngine silent([](test::FakePeer& peer) { peer.wait_for_drop(); });
  const auto silence = send(silent.endpoint());
  ASSERT_FALSE(silence);
  EXPECT_EQ(silence.error().code(), Errc::EngineTimeout);
}

}  // namespace
}  // namespace baton::engine
