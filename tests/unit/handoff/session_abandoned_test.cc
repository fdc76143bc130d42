// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// Clients that leave: what each engine's hand-off needs then. prefill-router.md §2.7.
#include "handoff/session.h"
#include "unit/handoff/handoff_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>

namespace baton::handoff {
namespace {

using namespace std::chrono_literals;
using engine::Api;
using test::FakeEngine;
using test::FakePeer;
using test::response;
using testing::HasSubstr;

constexpr const char* kKeptPartlyCached =
    R"({"choices":[{"finish_reason":"length"}],"kv_transfer_params":{"remote_port":5600},)"
    R"("usage":{"prompt_tokens":9,"completion_tokens":1,)"
    R"("prompt_tokens_details":{"cached_tokens":4}}})";
constexpr const char* kMetWithUsage =
    R"({"choices":[{"finish_reason":"length"}],"usage":{"prompt_tokens":9}})";

// Assigning to one that is not finished would let go of its request without giving it up.
static_assert(!std::is_move_assignable_v<UpstreamResponse>);

struct Abandoned : HandoffFixture {
  void serve_pair(Engine engine, const FakeEngine& prefill, const FakeEngine& decode) {
    serve(engine, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, decode.endpoint()}});
  }
  void leave() { cancellation.request(client_gone()); }
  void expect_client_gone() {
    wait_for_answer();
    ASSERT_FALSE(*answer);
    EXPECT_EQ(failure(), Errc::ClientGone);
    EXPECT_EQ(answer->error().message(), "the client left");
  }
  void expect_nothing_left() {
    answer.reset();
    wait_for_legs();
    EXPECT_EQ(in_flight(), 0);
  }
};

TEST_F(Abandoned, BeforeAnythingWasDoneMeansThatNothingIsSent) {
  for (const Engine engine : {Engine::Vllm, Engine::Sglang, Engine::Trtllm}) {
    const FakeEngine prefill(test::always(response(200, kKeptPartlyCached)));
    const FakeEngine decode(test::always(response(200, "decoded")));
    config.models.clear();
    serve_pair(engine, prefill, decode);
    if (!cancellation.requested()) leave();
    ask(Api::Completions, kRequest);
    expect_client_gone();
    expect_nothing_left();
    EXPECT_EQ(prefill.connections() + decode.connections(), 0U);
  }
}

TEST_F(Abandoned, WhileAPeerIsLookedUpMeansThatNothingIsSent) {
  FakeEngine prefill(answers_when_told(response(200, "{}")));
  const FakeEngine decode(test::always(response(200, "decoded")));
  model::WorkerSpec asked = spec(Engine::Sglang, Role::Prefill, prefill.endpoint());
  asked.bootstrap_port.reset();
  serve({asked, spec(Engine::Sglang, Role::Decode, decode.endpoint())});
  begin(Api::Completions, kRequest);
  run_until([&] { return prefill.pauses() == 1; });
  leave();
  prefill.proceed();
  expect_client_gone();
  expect_nothing_left();
  EXPECT_EQ(prefill.requests().size(), 1U) << "where it was asked for its port";
  EXPECT_EQ(decode.connections(), 0U);
}

// vLLM: the prefill may finish; what it pinned is then fetched by a leg of one token.
TEST_F(Abandoned, DuringAVllmPrefillHasTheBlocksReleasedAfterIt) {
  FakeEngine prefill(answers_when_told(response(200, kKeptPartlyCached)));
  const FakeEngine decode(test::always(response(200, "released")));
  serve_pair(Engine::Vllm, prefill, decode);
  begin(Api::Completions, kRequest);
  run_until([&] { return prefill.pauses() == 1; });
  leave();
  run_for(20ms);
  EXPECT_EQ(prefill.drops(), 0U);
  EXPECT_TRUE(decode.requests().empty());
  prefill.proceed();
  expect_client_gone();
  expect_nothing_left();
  ASSERT_EQ(decode.requests().size(), 1U);
  EXPECT_EQ(json(decode.requests()[0].body),
            json(R"({"model":"m","prompt":"p","max_tokens":1,"stream":false,)"
                 R"("kv_transfer_params":{"remote_port":5600},"cache_salt":"release-id-1"})"));
  EXPECT_THAT(decode.requests()[0].head, HasSubstr("X-Request-Id: id-1\r\n"));
  EXPECT_EQ(trace.decode.worker, "") << "a release serves nobody";
  EXPECT_EQ(counters.releases.value(), 1U);
  EXPECT_EQ(counters.wasted_prefill_tokens.value(), 5U) << "those it did not have already";
}

TEST_F(Abandoned, DuringAPrefillThatKeepsNothingReleasesNothing) {
  FakeEngine prefill(answers_when_told(response(200, kMetWithUsage)));
  const FakeEngine decode(test::always(response(200, "decoded")));
  serve_pair(Engine::Vllm, prefill, decode);
  begin(Api::Completions, kRequest);
  run_until([&] { return prefill.pauses() == 1; });
  leave();
  prefill.proceed();
  expect_client_gone();
  expect_nothing_left();
  EXPECT_TRUE(decode.requests().empty());
}

TEST_F(Abandoned, DuringAPrefillThatFailsRepeatsNothing) {
  FakeEngine prefill(answers_when_told(response(500, "boom")));
  const FakeEngine other(test::always(response(200, kKeptPartlyCached)));
  const FakeEngine decode(test::always(response(200, "decoded")));
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()},
                       {Role::Prefill, other.endpoint()},
                       {Role::Decode, decode.endpoint()}});
  begin(Api::Completions, kRequest);
  run_until([&] { return prefill.pauses() == 1; });
  leave();
  prefill.proceed();
  expect_client_gone();
  expect_nothing_left();
  EXPECT_TRUE(other.requests().empty());
  EXPECT_TRUE(decode.requests().empty());
}

TEST_F(Abandoned, APrefillThatTakesTooLongIsDroppedWhenTheGraceIsOver) {
  grace = 50ms;
  const FakeEngine prefill(waits_to_be_dropped());
  const FakeEngine decode(test::always(response(200, "decoded")));
  serve_pair(Engine::Vllm, prefill, decode);
  begin(Api::Completions, kRequest);
  run_until([&] { return prefill.requests().size() == 1; });
  leave();
  expect_client_gone();
  EXPECT_TRUE(prefill.wait_for_drops(1));
  expect_nothing_left();
}

// vLLM, TensorRT-LLM: a decode that is fetching is not cut; its first byte shows that it has.
TEST_F(Abandoned, DuringADecodeBeforeItsFirstTokenIsCompletedFirst) {
  for (const bool head_first : {false, true}) {
    FakeEngine prefill(test::always(response(200, kKeptPartlyCached)));
    FakeEngine slow([head_first](FakePeer& peer) {
      peer.read_request();
      const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";
      if (head_first) peer.write(head);
      peer.wait_for_proceed();
      peer.write(head_first ? "first" : head + "first");
      peer.wait_for_drop();
    });
    config.models.clear();
    Cancellation client;
    serve_pair(Engine::Vllm, prefill, slow);
    answer.reset();
    std::string outcome;
    start([&]() -> awaitable<void> {
      auto got = co_await handoff->run(job(Api::Completions, kRequest), trace, client);
      if (!got) {
        outcome = got.error().message();
        co_return;
      }
      while (outcome.empty()) {
        const auto piece = co_await got->stream().read();
        if (piece) {
          got->first_token();
          continue;
        }
        const auto recovered = co_await got->recover(piece.error(), nullptr);
        outcome = recovered ? "recovered" : recovered.error().message();
      }
    });
    run_until([&] { return slow.pauses() == 1; });
    client.request(client_gone());
    run_for(20ms);
    EXPECT_EQ(slow.drops(), 0U) << "the blocks are still being fetched";
    slow.proceed();
    run_until([&] { return !outcome.empty(); });
    EXPECT_EQ(outcome, "the client left");
    EXPECT_TRUE(slow.wait_for_drops(1)) << "and now the worker is told to stop";
    expect_nothing_left();
    EXPECT_EQ(slow.requests().size(), 1U) << "nothing is left to release";
  }
  EXPECT_EQ(counters.releases.value(), 0U);
}

TEST_F(Abandoned, ADecodeThatNeverBeginsIsDroppedWhenTheGraceIsOverAndFreesTheBlocks) {
  grace = 50ms;
  const FakeEngine prefill(test::always(response(200, kKeptPartlyCached)));
  const FakeEngine stuck(waits_to_be_dropped());
  const FakeEngine decode(test::always(response(200, "released")));
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()},
                       {Role::Decode, stuck.endpoint()},
                       {Role::Decode, decode.endpoint()}});
  begin(Api::Completions, kRequest);
  run_until([&] { return stuck.requests().size() == 1; });
  leave();
  expect_client_gone();
  EXPECT_TRUE(stuck.wait_for_drops(1));
  expect_nothing_left();
  EXPECT_TRUE(decode.requests().empty()) << "vLLM's decode worker tells the prefill worker itself";
  EXPECT_EQ(counters.releases.value(), 0U);
}

// TensorRT-LLM completes on the context: the same as vLLM's, with its own fields.
TEST_F(Abandoned, DuringAContextPhaseIsCompletedByAGenerationOfOneToken) {
  FakeEngine prefill(answers_when_told(response(
      200, R"({"choices":[{"finish_reason":"length","disaggregated_params":{"ctx_request_id":7}}],)"
           R"("usage":{"prompt_tokens":2}})")));
  const FakeEngine decode(test::always(response(200, "released")));
  serve_pair(Engine::Trtllm, prefill, decode);
  begin(Api::Completions, kRequest);
  run_until([&] { return prefill.pauses() == 1; });
  leave();
  prefill.proceed();
  expect_client_gone();
  expect_nothing_left();
  ASSERT_EQ(decode.requests().size(), 1U);
  const auto body = json(decode.requests()[0].body);
  EXPECT_EQ(body["max_tokens"], 1);
  EXPECT_EQ(body["disaggregated_params"]["ctx_request_id"], 7);
  EXPECT_EQ(body["disaggregated_params"]["request_type"], "generation_only");
  EXPECT_EQ(counters.wasted_prefill_tokens.value(), 2U);
}

// vLLM's push: both legs run; what is being written is not cut either.
TEST_F(Abandoned, DuringAPushLetsTheBlocksArriveAndThenStops) {
  FakeEngine prefill(answers_when_told(response(200, kKeptPartlyCached)));
  FakeEngine decode([](FakePeer& peer) {
    peer.read_request();
    peer.wait_for_proceed();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfirst");
    peer.wait_for_drop();
  });
  model::WorkerSpec first = spec(Engine::Vllm, Role::Prefill, prefill.endpoint());
  first.handoff = model::HandoffMode::NixlPush;
  first.nixl = model::NixlPeer{.engine_id = "e-1", .side_channel = {"10.0.0.1", 5600}};
  model::WorkerSpec second = spec(Engine::Vllm, Role::Decode, decode.endpoint());
  second.handoff = model::HandoffMode::NixlPush;
  serve({first, second});
  begin(Api::Completions, kRequest);
  run_until([&] { return prefill.pauses() == 1 && decode.pauses() == 1; });
  leave();
  run_for(20ms);
  EXPECT_EQ(prefill.drops() + decode.drops(), 0U);
  prefill.proceed();
  decode.proceed();
  expect_client_gone();
  EXPECT_TRUE(decode.wait_for_drops(1));
  expect_nothing_left();
  EXPECT_EQ(decode.requests().size(), 1U) << "nothing is left to release";
}

// A prefill that never answers would leave vLLM's decode worker with blocks that nobody writes to.
TEST_F(Abandoned, DuringAPushThatOutlivesTheGraceWaitsForThePrefillAndReleasesNothing) {
  grace = 30ms;
  FakeEngine prefill(answers_when_told(response(200, kKeptPartlyCached)));
  FakeEngine decode([](FakePeer& peer) {
    peer.read_request();
    peer.wait_for_proceed();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfirst");
    peer.wait_for_drop();
  });
  model::WorkerSpec first = spec(Engine::Vllm, Role::Prefill, prefill.endpoint());
  first.handoff = model::HandoffMode::NixlPush;
  first.nixl = model::NixlPeer{.engine_id = "e-1", .side_channel = {"10.0.0.1", 5600}};
  model::WorkerSpec second = spec(Engine::Vllm, Role::Decode, decode.endpoint());
  second.handoff = model::HandoffMode::NixlPush;
  serve({first, second});
  begin(Api::Completions, kRequest);
  run_until([&] { return prefill.pauses() == 1 && decode.requests().size() == 1; });
  leave();
  run_for(200ms);
  EXPECT_EQ(prefill.drops() + decode.drops(), 0U);
  prefill.proceed();
  run_for(200ms);
  EXPECT_EQ(decode.drops(), 0U) << "it may not have been scheduled yet";
  decode.proceed();
  expect_client_gone();
  EXPECT_TRUE(decode.wait_for_drops(1));
  expect_nothing_left();
  EXPECT_EQ(prefill.drops(), 0U);
  EXPECT_EQ(counters.releases.value(), 0U);
}

// SGLang: the decode is closed at once, the prefill ends by itself.
TEST_F(Abandoned, DuringAnSglangHandoffClosesTheDecodeAtOnceAndLeavesThePrefillToEnd) {
  FakeEngine prefill(answers_when_told(response(200, kMetWithUsage)));
  const FakeEngine decode(waits_to_be_dropped());
  serve_pair(Engine::Sglang, prefill, decode);
  begin(Api::Completions, kRequest);
  run_until([&] { return prefill.pauses() == 1 && decode.requests().size() == 1; });
  leave();
  expect_client_gone();
  EXPECT_TRUE(decode.wait_for_drops(1));
  run_until([&] { return decode.aborts().size() == 1 && tasks.running() == 1; });
  EXPECT_EQ(prefill.drops(), 0U) << "the prefill is not cut in the middle of a transfer";
  EXPECT_EQ(in_flight(), 1);
  prefill.proceed();
  expect_nothing_left();
  EXPECT_EQ(prefill.connections(), 1U);
  EXPECT_EQ(decode.requests().size(), 1U) << "there is nothing to release";
  EXPECT_EQ(counters.wasted_prefill_tokens.value(), 9U);
}

// The name of a leg as its body and its abort say it.
std::string rid_in(const std::string& body) {
  return wire::JsonObject::parse(body).value().find_string("rid").value_or("");
}

TEST_F(Abandoned, AnSglangPrefillIsNotLeftWaitingForAPartnerThatWillNotCome) {
  grace = 50ms;
  const FakeEngine prefill(waits_to_be_dropped());
  const FakeEngine decode(waits_to_be_dropped());
  serve_pair(Engine::Sglang, prefill, decode);
  begin(Api::Completions, kRequest);
  run_until([&] { return prefill.requests().size() == 1 && decode.requests().size() == 1; });
  leave();
  expect_client_gone();
  expect_nothing_left();
  EXPECT_TRUE(prefill.wait_for_drops(1));
  EXPECT_TRUE(decode.wait_for_drops(1));
  // SGLang looks only now and then whether a client is there.
  for (const FakeEngine* engine : {&prefill, &decode}) {
    ASSERT_TRUE(engine->wait_for_aborts(1));
    EXPECT_EQ(rid_in(engine->aborts()[0].body), rid_in(engine->requests()[0].body));
    EXPECT_EQ(rid_in(engine->aborts()[0].body).size(), 32U);
  }
  EXPECT_NE(rid_in(prefill.aborts()[0].body), rid_in(decode.aborts()[0].body));
}

// Nothing counts on the worker any more, and its address is still needed.
TEST_F(Abandoned, AWorkerThatLeavesTheFleetIsKeptUntilItsLegIsAborted) {
  const FakeEngine slow(waits_to_be_dropped());
  serve(Engine::Sglang, {{Role::Aggregated, slow.endpoint()}});
  begin(Api::Completions, kRequest);
  run_until([&] { return slow.requests().size() == 1; });
  const std::weak_ptr<fleet::Worker> leaving = fleet->find_worker(slow.endpoint().to_string());
  leave();
  fleet->configure({});
  expect_client_gone();
  answer.reset();
  trace = {};
  for (int i = 0; i < 100; ++i) decisions.open(std::to_string(i), "m", 0);  // why it was chosen
  run_until([&] {
    fleet->sweep();
    return leaving.expired();
  });
  EXPECT_EQ(slow.aborts().size(), 1U);
  wait_for_legs();
}

TEST_F(Abandoned, AnAnswerLetGoBeforeItBeganEndsBothLegs) {
  const FakeEngine prefill(waits_to_be_dropped());
  const FakeEngine decode([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
    peer.wait_for_drop();
  });
  grace = 50ms;
  serve_pair(Engine::Sglang, prefill, decode);
  ask(Api::Completions, kRequest);
  ASSERT_TRUE(*answer);
  run_until([&] { return prefill.requests().size() == 1; });
  expect_nothing_left();
  EXPECT_TRUE(prefill.wait_for_drops(1));
  EXPECT_TRUE(decode.wait_for_drops(1));
}

// vLLM's decode worker tells the prefill worker, whatever became of its request.
TEST_F(Abandoned, AnAnswerLetGoBeforeItBeganLeavesItsBlocksToTheDecodeWorker) {
  const FakeEngine prefill(test::always(response(200, kKeptPartlyCached)));
  const FakeEngine slow([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
    peer.wait_for_drop();
  });
  const FakeEngine decode(test::always(response(200, "released")));
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()},
                       {Role::Decode, slow.endpoint()},
                       {Role::Decode, decode.endpoint()}});
  ask(Api::Completions, kRequest);
  ASSERT_TRUE(*answer);
  expect_nothing_left();
  EXPECT_TRUE(slow.wait_for_drops(1));
  EXPECT_TRUE(decode.requests().empty());
}

TEST_F(Abandoned, AStreamIsClosedAtOnce) {
  const FakeEngine prefill(test::always(response(200, kKeptPartlyCached)));
  const FakeEngine decode([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfirst");
    peer.wait_for_drop();
  });
  serve_pair(Engine::Vllm, prefill, decode);
  ask(Api::Completions, kRequest);
  ASSERT_TRUE(*answer);
  (*answer)->first_token();
  leave();
  EXPECT_EQ(read_rest(), "failed: the client left");
  EXPECT_TRUE(decode.wait_for_drops(1));
  expect_nothing_left();
  EXPECT_EQ(decode.requests().size(), 1U);
}

TEST_F(Abandoned, AWorkerThatDoesBothIsStoppedAtOnce) {
  const FakeEngine slow(waits_to_be_dropped());
  serve(Engine::Vllm, {{Role::Aggregated, slow.endpoint()}});
  begin(Api::Chat, R"({"model":"m","messages":[]})");
  run_until([&] { return slow.requests().size() == 1; });
  leave();
  expect_client_gone();
  EXPECT_TRUE(slow.wait_for_drops(1));
  expect_nothing_left();
}

}  // namespace
}  // namespace baton::handoff
