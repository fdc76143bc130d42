// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/handoff.h"

#include "unit/handoff/handoff_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

namespace baton::handoff {
namespace {

using namespace std::chrono_literals;
using engine::Api;
using test::FakeEngine;
using test::FakePeer;
using test::response;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kKept =
    R"({"choices":[{"finish_reason":"length"}],"kv_transfer_params":{"remote_port":5600}})";
constexpr const char* kRequest = R"({"model":"m","prompt":"p","max_tokens":50,"stream":true})";

FakeEngine::Script nobody_should_come() {
  return [](FakePeer& peer) { peer.read_request(); };
}

struct PrefillFirst : HandoffFixture {
  FakeEngine decode{test::always(response(200, "decoded"))};
};

TEST_F(PrefillFirst, GoesThroughPrefillAndThenDecode) {
  const FakeEngine prefill(test::always(response(200, kKept)));
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, decode.endpoint()}});
  ask(Api::Completions, kRequest);
  ASSERT_TRUE(*answer) << answer->error().message();
  EXPECT_EQ(in_flight(), 1) << "the decode worker's";
  EXPECT_EQ(read_rest(), "decoded");

  ASSERT_EQ(prefill.requests().size(), 1U);
  EXPECT_THAT(prefill.requests()[0].head, StartsWith("POST /v1/completions HTTP/1.1\r\n"));
  EXPECT_THAT(prefill.requests()[0].head, HasSubstr("X-Request-Id: id-1\r\n"));
  EXPECT_EQ(json(prefill.requests()[0].body)["max_tokens"], 1);
  EXPECT_EQ(json(prefill.requests()[0].body)["kv_transfer_params"]["do_remote_decode"], true);
  ASSERT_EQ(decode.requests().size(), 1U);
  EXPECT_EQ(json(decode.requests()[0].body),
            json(R"({"model":"m","prompt":"p","max_tokens":50,"stream":true,)"
                 R"("kv_transfer_params":{"remote_port":5600}})"));
  EXPECT_EQ(trail.prefill_worker, prefill.endpoint().to_string());
  EXPECT_EQ(trail.decode_worker, decode.endpoint().to_string());
  EXPECT_TRUE(trail.prefill_time && trail.decode_sent);
  answer.reset();
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(PrefillFirst, SpeaksTensorRtLlmToo) {
  const FakeEngine prefill(test::always(response(
      200, R"({"choices":[{"finish_reason":"length","disaggregated_params":{"ctx_request_id":7}}],)"
           R"("prompt_token_ids":[4,5],"usage":{"prompt_tokens":2}})")));
  serve(Engine::Trtllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, decode.endpoint()}});
  for (int i = 0; i < 2; ++i) {
    ask(Api::Completions, kRequest);
    ASSERT_TRUE(*answer) << answer->error().message();
    EXPECT_EQ(read_rest(), "decoded");
  }
  const auto id = [&](std::size_t i) {
    return json(prefill.requests()[i].body)["disaggregated_params"]["disagg_request_id"];
  };
  EXPECT_GE(id(0), std::uint64_t{1} << 40);
  EXPECT_NE(id(0), id(1));
  EXPECT_EQ(json(decode.requests()[0].body),
            json(R"({"model":"m","prompt":[4,5],"max_tokens":50,"stream":true,)"
                 R"("disaggregated_params":{"ctx_request_id":7,"request_type":"generation_only",)"
                 R"("ctx_usage":{"prompt_tokens":2}}})"));
}

TEST_F(PrefillFirst, AnswersFromThePrefillWhereItEndedThere) {
  const FakeEngine prefill(
      test::always(response(200, R"({"choices":[{"finish_reason":"stop"}],"id":"1"})")));
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, decode.endpoint()}});
  ask(Api::Completions, kRequest);
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->whole, R"({"choices":[{"finish_reason":"stop"}],"id":"1"})");
  EXPECT_TRUE(decode.requests().empty());
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(PrefillFirst, FailsAsThePrefillDoesAndLeavesTheDecodeWorkerAlone) {
  const struct {
    std::string answer;
    Errc code;
    int status;
  } cases[] = {
      {response(400, R"({"error":{"message":"no","param":"prompt"}})"), Errc::EngineRejected, 400},
      {response(429, "busy", "Retry-After: 3\r\n"), Errc::EngineOverloaded, 429},
      {response(500, "boom"), Errc::EngineFailed, 502},
      {response(200, "no JSON"), Errc::EngineProtocol, 502},
      {"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", Errc::StreamBroken, 502},
      {"", Errc::EngineFailed, 502},
  };
  std::atomic<std::size_t> next = 0;  // read by the engine's threads
  const FakeEngine prefill([&](FakePeer& peer) {
    if (peer.read_request()) peer.write(cases[next].answer);
  });
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, decode.endpoint()}});
  for (; next < std::size(cases); ++next) {
    ask(Api::Completions, kRequest);
    ASSERT_FALSE(*answer) << next;
    EXPECT_EQ(failure(), cases[next].code) << next << ": " << answer->error().message();
    EXPECT_EQ(answer->error().http_status(), cases[next].status) << next;
    EXPECT_EQ(in_flight(), 0);
  }
  EXPECT_TRUE(decode.requests().empty());
}

TEST_F(PrefillFirst, FailsAsTheDecodeDoes) {
  const FakeEngine prefill(test::always(response(200, kKept)));
  const FakeEngine full(test::always(response(503, R"({"detail":"full"})", "Retry-After: 9\r\n")));
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, full.endpoint()}});
  ask(Api::Completions, kRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::EngineOverloaded);
  EXPECT_EQ(answer->error().retry_after(), 9s);
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(PrefillFirst, GoesOnToTheNextWorkerWhereOneCannotBeReached) {
  const FakeEngine prefill(test::always(response(200, kKept)));
  serve(Engine::Vllm, {{Role::Prefill, test::closed_endpoint()},
                       {Role::Prefill, prefill.endpoint()},
                       {Role::Decode, test::closed_endpoint()},
                       {Role::Decode, decode.endpoint()}});
  ask(Api::Completions, kRequest);
  ASSERT_TRUE(*answer) << answer->error().message();
  EXPECT_EQ(read_rest(), "decoded");
  EXPECT_EQ(trail.prefill_worker, prefill.endpoint().to_string());
  EXPECT_EQ(trail.decode_worker, decode.endpoint().to_string());
}

TEST_F(PrefillFirst, SaysSoWhereNobodyCanBeReached) {
  serve(Engine::Vllm, {{Role::Prefill, test::closed_endpoint()},
                       {Role::Prefill, test::closed_endpoint()},
                       {Role::Decode, decode.endpoint()}});
  ask(Api::Completions, kRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::EngineUnreachable);
}

TEST_F(PrefillFirst, DoesNotRepeatARequestThatReachedAWorker) {
  const FakeEngine failing([](FakePeer& peer) { peer.read_request(); });
  const FakeEngine other(nobody_should_come());
  serve(Engine::Vllm, {{Role::Prefill, failing.endpoint()},
                       {Role::Prefill, other.endpoint()},
                       {Role::Decode, decode.endpoint()}});
  ask(Api::Completions, kRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failing.requests().size(), 1U);
  EXPECT_TRUE(other.requests().empty());
}

TEST_F(PrefillFirst, ReleasesTheBlocksWhereTheClientLeftDuringThePrefill) {
  FakeEngine prefill([](FakePeer& peer) {
    peer.read_request();
    peer.wait_for_proceed();
    peer.write(response(200, kKept));
  });
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, decode.endpoint()}});
  begin(Api::Completions, kRequest);
  run_until([&] { return prefill.requests().size() == 1; });
  cancellation.request(client_gone());
  prefill.proceed();
  wait_for_answer();
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::ClientGone);
  ASSERT_EQ(decode.requests().size(), 1U);
  EXPECT_EQ(json(decode.requests()[0].body),
            json(R"({"model":"m","prompt":"p","max_tokens":1,"stream":false,)"
                 R"("kv_transfer_params":{"remote_port":5600}})"));
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(PrefillFirst, ReleasesNothingWhereNothingWasKept) {
  FakeEngine prefill([](FakePeer& peer) {
    peer.read_request();
    peer.wait_for_proceed();
    peer.write(response(200, R"({"choices":[{"finish_reason":"length"}]})"));
  });
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, decode.endpoint()}});
  begin(Api::Completions, kRequest);
  run_until([&] { return prefill.requests().size() == 1; });
  cancellation.request(client_gone());
  prefill.proceed();
  wait_for_answer();
  EXPECT_EQ(failure(), Errc::ClientGone);
  EXPECT_TRUE(decode.requests().empty());
}

TEST_F(PrefillFirst, CompletesADecodeUnderWayWhoseClientLeft) {
  const FakeEngine prefill(test::always(response(200, kKept)));
  FakeEngine slow([](FakePeer& peer) {
    peer.read_request();
    peer.wait_for_proceed();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfirst");
    peer.wait_for_drop();
  });
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, slow.endpoint()}});
  begin(Api::Completions, kRequest);
  run_until([&] { return slow.requests().size() == 1; });
  cancellation.request(client_gone());
  run_for(20ms);
  EXPECT_FALSE(answer) << "the blocks are still being fetched";
  slow.proceed();
  wait_for_answer();
  ASSERT_TRUE(*answer);
  EXPECT_THAT(read_rest(), StartsWith("failed: the client left"));
  answer.reset();
  EXPECT_TRUE(slow.wait_for_drops(1)) << "and now the worker is told to stop";
}

TEST_F(PrefillFirst, LeavesAListOfPromptsToTheDecodeWorker) {
  const FakeEngine prefill(nobody_should_come());
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, decode.endpoint()}});
  ask(Api::Completions, R"({"model":"m","prompt":["a","b"],"kv_transfer_params":{"x":1}})");
  ASSERT_TRUE(*answer);
  EXPECT_EQ(read_rest(), "decoded");
  EXPECT_TRUE(prefill.requests().empty());
  EXPECT_EQ(decode.requests()[0].body, R"({"model":"m","prompt":["a","b"]})");
  EXPECT_EQ(trail.prefill_worker, "");
}

TEST_F(PrefillFirst, IsNotNeededWhereWorkersDoBoth) {
  for (const Role role : {Role::Aggregated, Role::Decode}) {
    config.models.clear();
    answer.reset();
    serve(Engine::Vllm, {{role, decode.endpoint()}});
    ask(Api::Chat, R"({"model":"m","messages":[]})");
    ASSERT_TRUE(*answer);
    EXPECT_EQ(read_rest(), "decoded");
    EXPECT_EQ(decode.requests().back().body, R"({"model":"m","messages":[]})");
    EXPECT_THAT(decode.requests().back().head, StartsWith("POST /v1/chat/completions "));
    answer.reset();
  }
}

TEST_F(PrefillFirst, StopsAnAggregatedWorkerAtOnceWhenTheClientLeaves) {
  const FakeEngine slow([](FakePeer& peer) {
    peer.read_request();
    peer.wait_for_drop();
  });
  serve(Engine::Vllm, {{Role::Aggregated, slow.endpoint()}});
  begin(Api::Chat, R"({"model":"m","messages":[]})");
  run_until([&] { return slow.requests().size() == 1; });
  cancellation.request(client_gone());
  wait_for_answer();
  EXPECT_EQ(failure(), Errc::ClientGone);
  EXPECT_TRUE(slow.wait_for_drops(1));
}

}  // namespace
}  // namespace baton::handoff
