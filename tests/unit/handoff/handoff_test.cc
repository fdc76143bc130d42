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
using testing::Not;
using testing::StartsWith;

FakeEngine::Script no_request_expected() {
  return [](FakePeer& peer) { peer.read_request(); };
}

struct PrefillFirst : HandoffFixture {
  FakeEngine decode{test::always(response(200, "decoded"))};
};

// prefill-router.md §1.3, outcome Completed.
TEST_F(PrefillFirst, GoesThroughPrefillAndThenDecode) {
  const FakeEngine prefill(test::always(response(200, kKept)));
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, decode.endpoint()}});
  ask(Api::Completions, kRequest);
  ASSERT_TRUE(*answer) << answer->error().message();
  EXPECT_EQ(in_flight(), 1) << "the decode worker's";
  EXPECT_TRUE((*answer)->handed_off());
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
  EXPECT_EQ(trace.prefill.worker, prefill.endpoint().to_string());
  EXPECT_EQ(trace.decode.worker, decode.endpoint().to_string());
  ASSERT_TRUE(trace.prefill.sent && trace.prefill.done && trace.decode.sent);
  EXPECT_LE(*trace.prefill.sent, *trace.prefill.done);
  EXPECT_LE(*trace.prefill.done, *trace.decode.sent);
  answer.reset();
  EXPECT_EQ(in_flight(), 0);
  EXPECT_EQ(trace.retries, 0U);
  EXPECT_EQ(counters.releases.value(), 0U);
}

TEST_F(PrefillFirst, SpeaksTensorRtLlmToo) {
  const FakeEngine prefill(test::always(response(
      200, R"({"choices":[{"finish_reason":"length","disaggregated_params":{"ctx_request_id":7}}],)"
           R"("prompt_token_ids":[4,5],"usage":{"prompt_tokens":2}})")));
  serve(Engine::Trtllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, decode.endpoint()}});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ask_and_read(Api::Completions, kRequest), "decoded");
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

// prefill-router.md §1.3, outcome Terminal; §2.1 step 14.
TEST_F(PrefillFirst, AnswersFromThePrefillWhereItEndedThere) {
  const FakeEngine prefill(
      test::always(response(200, R"({"choices":[{"finish_reason":"stop"}],"id":"1"})")));
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, decode.endpoint()}});
  ask(Api::Completions, kRequest);
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->whole(), R"({"choices":[{"finish_reason":"stop"}],"id":"1"})");
  EXPECT_TRUE(decode.requests().empty());
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(PrefillFirst, ServesWithoutACacheWhereThePrefillKeptNone) {
  const FakeEngine prefill(test::always(response(200, kMet)));
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, decode.endpoint()}});
  EXPECT_EQ(ask_and_read(Api::Completions, kRequest), "decoded");
  EXPECT_EQ(decode.requests()[0].body, kRequest);
}

// prefill-router.md §1.3, PrefillError and NoDisaggregatedParams; §2.6 rules 1, 2, 7 and 8.
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
      {response(200, R"({"error":{"message":"no"}})"), Errc::EngineFailed, 502},
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
    worker(prefill.endpoint()).succeeded();  // or it would be ejected
  }
  EXPECT_TRUE(decode.requests().empty());
}

TEST_F(PrefillFirst, FailsWhereAContextWorkerHasNothingToHandOver) {
  const FakeEngine prefill(test::always(
      response(200, R"({"choices":[{"finish_reason":"length","disaggregated_params":null}]})")));
  serve(Engine::Trtllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, decode.endpoint()}});
  ask(Api::Completions, kRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::NoHandoff);
  EXPECT_TRUE(decode.requests().empty());
}

TEST_F(PrefillFirst, FailsAsTheOnlyDecodeDoesAndReleasesWhatIsPinned) {
  const FakeEngine prefill(test::always(response(200, kKept)));
  const FakeEngine full(test::always(response(503, R"({"detail":"full"})", "Retry-After: 9\r\n")));
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, full.endpoint()}});
  ask(Api::Completions, kRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::EngineOverloaded);
  EXPECT_EQ(answer->error().retry_after(), 9s);
  wait_for_legs();
  EXPECT_EQ(counters.releases.value(), 1U);
  EXPECT_GE(full.requests().size(), 2U) << "rather one that has just failed than nobody";
  EXPECT_EQ(json(full.requests().back().body)["max_tokens"], 1);
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(PrefillFirst, LeavesWhatNeedsOneWorkerToTheDecodeWorker) {
  const FakeEngine prefill(no_request_expected());
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, decode.endpoint()}});
  const std::string requirements = R"({"model":"m","prompt":"a","echo":true)";
  EXPECT_EQ(ask_and_read(Api::Completions, requirements + R"(,"kv_transfer_params":{"x":1}})"),
            "decoded");
  EXPECT_FALSE((*answer)->handed_off());
  EXPECT_TRUE(prefill.requests().empty());
  EXPECT_EQ(decode.requests()[0].body, requirements + "}");
  EXPECT_EQ(trace.prefill.worker, "");
}

// prefill-router.md §2.1 step 4 (exit: passthrough).
TEST_F(PrefillFirst, IsNotNeededWhereWorkersDoBoth) {
  for (const Role role : {Role::Aggregated, Role::Decode}) {
    config.models.clear();
    answer.reset();
    serve(Engine::Vllm, {{role, decode.endpoint()}});
    EXPECT_EQ(ask_and_read(Api::Chat, R"({"model":"m","messages":[]})"), "decoded");
    EXPECT_EQ(decode.requests().back().body, R"({"model":"m","messages":[]})");
    EXPECT_THAT(decode.requests().back().head, StartsWith("POST /v1/chat/completions "));
  }
}

TEST_F(PrefillFirst, UsesTheNameTheWorkersKnow) {
  const FakeEngine prefill(test::always(response(200, kKept)));
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, decode.endpoint()}});
  HandoffRequest aliased = job(Api::Completions, R"({"model":"alias","prompt":"p"})");
  aliased.by_alias = true;
  begin(aliased);
  wait_for_answer();
  EXPECT_EQ(read_rest(), "decoded");
  EXPECT_EQ(json(prefill.requests()[0].body)["model"], "m");
  EXPECT_EQ(json(decode.requests()[0].body)["model"], "m");
}

// prefill-router.md §1.3, outcome Bootstrap.
TEST_F(PrefillFirst, IsNotWaitedForWhereTheWorkersMeetByThemselves) {
  FakeEngine prefill(answers_when_told(response(200, kMet)));
  serve(Engine::Sglang, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, decode.endpoint()}});
  ask(Api::Completions, kRequest);
  ASSERT_TRUE(*answer) << answer->error().message();
  EXPECT_TRUE((*answer)->handed_off());
  EXPECT_EQ(read_rest(), "decoded");
  prefill.proceed();
  wait_for_legs();
  EXPECT_TRUE(trace.prefill.done);
  const auto first = json(prefill.requests()[0].body);
  const auto second = json(decode.requests()[0].body);
  for (const char* field : {"bootstrap_host", "bootstrap_port", "bootstrap_room"})
    EXPECT_EQ(first[field], second[field]);
  EXPECT_EQ(first["bootstrap_host"], "127.0.0.1");
  EXPECT_EQ(first["bootstrap_port"], 8998);
}

// Ranks: prefill-router.md §0, §2.5, §2.8.
struct RanksOfLegs : HandoffFixture {
  static constexpr const char* kRank = "X-data-parallel-rank";

  void serve_pair(Engine engine, std::uint32_t prefill_ranks, std::uint32_t decode_ranks) {
    model::WorkerSpec first = spec(engine, Role::Prefill, prefill.endpoint());
    first.data_parallel_size = prefill_ranks;
    model::WorkerSpec second = spec(engine, Role::Decode, decode.endpoint());
    second.data_parallel_size = decode_ranks;
    serve({first, second});
  }
  void serve_ranks(Engine engine, std::uint32_t prefill_ranks, std::uint32_t decode_ranks) {
    serve_pair(engine, prefill_ranks, decode_ranks);
    hints.prefill = scheduling::Pin{prefill.endpoint().to_string(), prefill_ranks - 1};
    hints.decode = scheduling::Pin{decode.endpoint().to_string(), decode_ranks - 1};
    EXPECT_EQ(ask_and_read(Api::Completions, kRequest), "decoded");
    wait_for_legs();
    ASSERT_EQ(prefill.requests().size(), 1U);
    ASSERT_EQ(decode.requests().size(), 1U);
    prefill_head = prefill.requests()[0].head;
    decode_head = decode.requests()[0].head;
  }
  FakeEngine prefill{test::always(response(
      200, R"({"choices":[{"finish_reason":"length","disaggregated_params":{"ctx_request_id":7}}],)"
           R"("kv_transfer_params":{"remote_port":5600}})"))};
  FakeEngine decode{test::always(response(200, "decoded"))};
  std::string prefill_head;
  std::string decode_head;
};

TEST_F(RanksOfLegs, AreToldToBothVllmWorkers) {
  serve_ranks(Engine::Vllm, 4, 8);
  EXPECT_THAT(prefill_head, HasSubstr("X-data-parallel-rank: 3\r\n"));
  EXPECT_THAT(decode_head, HasSubstr("X-data-parallel-rank: 7\r\n"));
  EXPECT_EQ(trace.prefill.rank, 3U);
  EXPECT_EQ(trace.decode.rank, 7U);
}

TEST_F(RanksOfLegs, AreToldToTheSglangDecodeWorkerAndToPrefillByTheRoom) {
  serve_ranks(Engine::Sglang, 4, 8);
  EXPECT_THAT(prefill_head, Not(HasSubstr(kRank)));
  EXPECT_THAT(decode_head, HasSubstr("X-data-parallel-rank: 7\r\n"));
  const std::uint64_t room = json(decode.requests()[0].body)["bootstrap_room"];
  EXPECT_EQ(room % 4, 3U);
  EXPECT_EQ(json(prefill.requests()[0].body)["bootstrap_room"], room);
}

TEST_F(RanksOfLegs, AreNotToldToTensorRtLlm) {
  serve_ranks(Engine::Trtllm, 4, 8);
  EXPECT_THAT(prefill_head, Not(HasSubstr(kRank)));
  EXPECT_THAT(decode_head, Not(HasSubstr(kRank)));
}

TEST_F(RanksOfLegs, AreNotToldToWorkersThatHaveOnlyOne) {
  serve_ranks(Engine::Vllm, 1, 1);
  EXPECT_THAT(prefill_head, Not(HasSubstr(kRank)));
  EXPECT_THAT(decode_head, Not(HasSubstr(kRank)));
  EXPECT_EQ(trace.prefill.rank, std::nullopt);
}

TEST_F(RanksOfLegs, OutOfRangeAreRefusedBeforeAnythingIsSent) {
  serve_pair(Engine::Vllm, 4, 1);
  hints.prefill = scheduling::Pin{prefill.endpoint().to_string(), 4};
  ask(Api::Completions, kRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::InvalidRouting);
  EXPECT_TRUE(prefill.requests().empty() && decode.requests().empty());
}

}  // namespace
}  // namespace baton::handoff
