// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// The modes whose legs are sent at once: each waits for the other, so each must be told of the
// other's failure.
#include "handoff/session.h"
#include "unit/handoff/handoff_fixture.h"
#include "unit/scheduling/known_prompt_stub.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

namespace baton::handoff {
namespace {

using engine::Api;
using test::FakeEngine;
using test::FakePeer;
using test::response;
using testing::HasSubstr;

constexpr const char* kChatRequest = R"({"model":"m","messages":[],"stream":true})";

std::string id_of(const test::SeenRequest& request) {
  const std::size_t at = request.head.find("X-Request-Id: ") + 14;
  return request.head.substr(at, request.head.find("\r\n", at) - at);
}

struct LegsTogether : HandoffFixture {
  void serve_pair(const model::Endpoint& prefill, const model::Endpoint& decode) {
    serve(Engine::Sglang, {{Role::Prefill, prefill}, {Role::Decode, decode}});
  }
};

TEST_F(LegsTogether, MeetInAnotherRoomForEachRequest) {
  const FakeEngine prefill(test::always(response(200, kMet)));
  const FakeEngine decode(test::always(response(200, "decoded")));
  serve_pair(prefill.endpoint(), decode.endpoint());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ask_and_read(Api::Chat, kChatRequest), "decoded");
    wait_for_legs();
    answer.reset();
  }
  ASSERT_EQ(prefill.requests().size(), 2U);
  ASSERT_EQ(decode.requests().size(), 2U);
  const auto room = [](const test::SeenRequest& request) {
    return json(request.body)["bootstrap_room"];
  };
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(room(prefill.requests()[i]), room(decode.requests()[i]));
    EXPECT_EQ(id_of(prefill.requests()[i]), id_of(decode.requests()[i]));
  }
  EXPECT_NE(room(decode.requests()[0]), room(decode.requests()[1]));
  EXPECT_EQ(prefill.connections(), 1U) << "its answer is read, so its connection can be kept";
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(LegsTogether, APrefillThatRefusesEndsTheDecodeAtOnce) {
  const FakeEngine prefill(test::always(response(400, R"({"message":"too long"})")));
  const FakeEngine decode(waits_to_be_dropped());
  serve_pair(prefill.endpoint(), decode.endpoint());
  ask(Api::Chat, kChatRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::EngineRejected);
  EXPECT_EQ(answer->error().message(), "too long");
  EXPECT_TRUE(decode.requests().empty() || decode.wait_for_drops(1));
  EXPECT_EQ(in_flight(), 0);
}

struct ThrowingObserver : scheduling::KnownPromptStub {
  using scheduling::KnownPromptStub::KnownPromptStub;
  void computed(const std::optional<engine::Usage>&) override {
    throw std::runtime_error("injected");
  }
};

// Regression: the client waited for a leg that was gone.
TEST_F(LegsTogether, AnExceptionInThePrefillLegFailsTheRequest) {
  const FakeEngine prefill(test::always(response(200, kMet)));
  const FakeEngine decode(waits_to_be_dropped());
  serve_pair(prefill.endpoint(), decode.endpoint());
  expected_exceptions = 1;
  HandoffRequest wanted = job(Api::Chat, kChatRequest);
  wanted.observer = std::make_shared<ThrowingObserver>(16);
  begin(std::move(wanted));
  wait_for_answer();
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::Internal);
  EXPECT_TRUE(decode.requests().empty() || decode.wait_for_drops(1));
  wait_for_legs();
  EXPECT_EQ(expected_exceptions, 0) << "it was reported";
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(LegsTogether, APrefillThatFailsClosesTheWaitingDecodeAndAllIsRepeated) {
  FakeEngine failing(answers_when_told(response(500, "boom")));
  const FakeEngine prefill(test::always(response(200, kMet)));
  const FakeEngine waiting(waits_to_be_dropped());
  const FakeEngine decode(test::always(response(200, "decoded")));
  serve(Engine::Sglang, {{Role::Prefill, failing.endpoint()},
                         {Role::Prefill, prefill.endpoint()},
                         {Role::Decode, waiting.endpoint()},
                         {Role::Decode, decode.endpoint()}});
  begin(Api::Chat, kChatRequest);
  run_until([&] { return waiting.requests().size() == 1 && failing.pauses() == 1; });
  failing.proceed();
  wait_for_answer();
  EXPECT_TRUE(waiting.wait_for_drops(1)) << "nobody waits for the engine's own time limit";
  ASSERT_TRUE(*answer) << answer->error().message();
  EXPECT_EQ(read_rest(), "decoded");
  wait_for_legs();
  ASSERT_EQ(prefill.requests().size(), 1U);
  ASSERT_EQ(decode.requests().size(), 1U);
  EXPECT_EQ(id_of(prefill.requests()[0]), "id-1-r1");
  EXPECT_EQ(id_of(decode.requests()[0]), "id-1-r1");
  EXPECT_NE(json(decode.requests()[0].body)["bootstrap_room"],
            json(waiting.requests()[0].body)["bootstrap_room"]);
  answer.reset();
  EXPECT_EQ(trace.retries, 1U);
  EXPECT_EQ(in_flight(), 0);
  EXPECT_EQ(worker(waiting.endpoint()).condition(), fleet::Condition::New) << "it is not its fault";
}

TEST_F(LegsTogether, APrefillThatFailsAfterTheDecodesHeadIsRepeatedToo) {
  FakeEngine failing([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of it");
    peer.wait_for_proceed();
  });
  const FakeEngine prefill(test::always(response(200, kMet)));
  const FakeEngine waiting([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
    peer.wait_for_drop();
  });
  const FakeEngine decode(test::always(response(200, "decoded")));
  serve(Engine::Sglang, {{Role::Prefill, failing.endpoint()},
                         {Role::Prefill, prefill.endpoint()},
                         {Role::Decode, waiting.endpoint()},
                         {Role::Decode, decode.endpoint()}});
  ask(Api::Chat, kChatRequest);
  ASSERT_TRUE(*answer);
  run_until([&] { return failing.pauses() == 1; });
  failing.proceed();
  EXPECT_EQ(read_rest(), "decoded");
  EXPECT_TRUE(waiting.wait_for_drops(1));
  EXPECT_EQ(trace.decode.worker, decode.endpoint().to_string());
}

TEST_F(LegsTogether, APrefillThatFailsInsideItsAnswerEndsTheDecodeToo) {
  const FakeEngine prefill(test::always(response(200, R"({"error":{"message":"out of blocks"}})")));
  const FakeEngine decode(waits_to_be_dropped());
  serve_pair(prefill.endpoint(), decode.endpoint());
  ask(Api::Chat, kChatRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(answer->error().message(), "out of blocks");
  EXPECT_TRUE(decode.requests().empty() || decode.wait_for_drops(1));
  EXPECT_EQ(in_flight(), 0);
}

// Regression: on a kept-alive connection the decode leg was sent again, without its prefill.
TEST_F(LegsTogether, APrefillThatFailsEndsADecodeOnAKeptConnectionToo) {
  auto prefills = std::make_shared<std::atomic<int>>(0);
  FakeEngine prefill([prefills](FakePeer& peer) {
    while (peer.read_request()) {
      if (prefills->fetch_add(1) == 0) {
        peer.write(response(200, kMet));
        continue;
      }
      peer.wait_for_proceed();
      peer.write(response(500, "failed"));
    }
  });
  const FakeEngine decode([](FakePeer& peer) {
    peer.read_request();
    peer.write(response(200, "decoded"));
    peer.read_request();
    peer.wait_for_drop();
  });
  serve_pair(prefill.endpoint(), decode.endpoint());
  EXPECT_EQ(ask_and_read(Api::Chat, kChatRequest), "decoded");
  answer.reset();
  wait_for_legs();

  begin(Api::Chat, kChatRequest);
  run_until([&] { return decode.requests().size() == 2 && prefill.pauses() == 1; });
  prefill.proceed();
  wait_for_answer();
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::EngineFailed);
  EXPECT_THAT(answer->error().message(), HasSubstr("failed"));
  EXPECT_EQ(decode.requests().size(), 2U) << "the leg that was closed is not sent again";
}

TEST_F(LegsTogether, ADecodeThatFailsEndsThePrefillAtOnceAndAllIsRepeated) {
  FakeEngine full(answers_when_told(response(503, R"({"message":"full"})")));
  const FakeEngine decode(test::always(response(200, "decoded")));
  const FakeEngine waiting(waits_to_be_dropped());
  const FakeEngine prefill(test::always(response(200, kMet)));
  serve(Engine::Sglang, {{Role::Prefill, waiting.endpoint()},
                         {Role::Prefill, prefill.endpoint()},
                         {Role::Decode, full.endpoint()},
                         {Role::Decode, decode.endpoint()}});
  begin(Api::Chat, kChatRequest);
  run_until([&] { return waiting.requests().size() == 1 && full.pauses() == 1; });
  full.proceed();
  wait_for_answer();
  EXPECT_TRUE(waiting.wait_for_drops(1));
  ASSERT_TRUE(*answer) << answer->error().message();
  EXPECT_EQ(read_rest(), "decoded");
  EXPECT_EQ(id_of(decode.requests()[0]), "id-1-r1");
  wait_for_legs();
  answer.reset();
  EXPECT_EQ(in_flight(), 0);
}

// A decode worker may notice before us that its prefill worker is gone.
TEST_F(LegsTogether, ADecodeThatMissesItsPrefillIsAskedAgainWithAnotherOne) {
  auto decodes = std::make_shared<std::atomic<int>>(0);
  FakeEngine decode([decodes](FakePeer& peer) {
    while (peer.read_request()) {
      if (decodes->fetch_add(1) == 0) {
        peer.wait_for_proceed();
        peer.write(response(500, R"({"message":"KV transfer failed"})"));
      } else {
        peer.write(response(200, "decoded"));
      }
    }
  });
  const FakeEngine silent(waits_to_be_dropped());
  const FakeEngine prefill(test::always(response(200, kMet)));
  serve(Engine::Sglang, {{Role::Prefill, silent.endpoint()},
                         {Role::Prefill, prefill.endpoint()},
                         {Role::Decode, decode.endpoint()}});
  begin(Api::Chat, kChatRequest);
  run_until([&] { return silent.requests().size() == 1 && decode.pauses() == 1; });
  decode.proceed();
  wait_for_answer();
  ASSERT_TRUE(*answer) << answer->error().message();
  EXPECT_EQ(read_rest(), "decoded");
  EXPECT_TRUE(silent.wait_for_drops(1));
  wait_for_legs();
  EXPECT_EQ(prefill.requests().size(), 1U);
  answer.reset();
  EXPECT_EQ(trace.retries, 1U);
  EXPECT_EQ(in_flight(), 0);
}

// What one request trips over is no reason to take the only decode worker from all others.
TEST_F(LegsTogether, ADecodeThatFailsWithEveryPrefillIsBlamedOnce) {
  const std::string failed = response(500, R"({"message":"KV transfer failed"})");
  const FakeEngine decode([failed](FakePeer& peer) {
    while (peer.read_request()) peer.write(failed);
  });
  const FakeEngine prefill(waits_to_be_dropped());
  const FakeEngine second(waits_to_be_dropped());
  const FakeEngine third(waits_to_be_dropped());
  config.health.failures = 2;
  serve(Engine::Sglang, {{Role::Prefill, prefill.endpoint()},
                         {Role::Prefill, second.endpoint()},
                         {Role::Prefill, third.endpoint()},
                         {Role::Decode, decode.endpoint()}});
  ask(Api::Chat, kChatRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(decode.requests().size(), 3U);
  EXPECT_NE(worker(decode.endpoint()).condition(), fleet::Condition::Ejected);
}

TEST_F(LegsTogether, ADecodeThatDoesNotKnowUsIsNotAskedAgain) {
  const FakeEngine decode(test::always(response(401, R"({"message":"no key"})")));
  const FakeEngine prefill(waits_to_be_dropped());
  const FakeEngine second(waits_to_be_dropped());
  serve(Engine::Sglang, {{Role::Prefill, prefill.endpoint()},
                         {Role::Prefill, second.endpoint()},
                         {Role::Decode, decode.endpoint()}});
  ask(Api::Chat, kChatRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(decode.requests().size(), 1U);
}

TEST_F(LegsTogether, TwoThatFailedTogetherAreNotTriedAgain) {
  FakeEngine decode(answers_when_told(response(500, R"({"message":"KV transfer failed"})")));
  const FakeEngine prefill(waits_to_be_dropped());
  serve_pair(prefill.endpoint(), decode.endpoint());
  begin(Api::Chat, kChatRequest);
  run_until([&] { return prefill.requests().size() == 1 && decode.pauses() == 1; });
  decode.proceed();
  wait_for_answer();
  ASSERT_FALSE(*answer);
  EXPECT_THAT(answer->error().message(), HasSubstr("KV transfer failed"));
  wait_for_legs();
  EXPECT_EQ(decode.requests().size(), 1U);
  EXPECT_EQ(prefill.requests().size(), 1U);
}

TEST_F(LegsTogether, SayWhyTheOnlyDecodeFailed) {
  FakeEngine full(answers_when_told(response(503, R"({"message":"full"})")));
  const FakeEngine prefill(waits_to_be_dropped());
  serve_pair(prefill.endpoint(), full.endpoint());
  begin(Api::Chat, kChatRequest);
  run_until([&] { return prefill.requests().size() == 1 && full.pauses() == 1; });
  full.proceed();
  wait_for_answer();
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::EngineOverloaded);
  EXPECT_EQ(answer->error().message(), "full");
  wait_for_legs();
  EXPECT_TRUE(prefill.wait_for_drops(1));
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(LegsTogether, WhatHappensToThePrefillNoLongerMattersOnceTheFirstTokenIsThere) {
  FakeEngine prefill([](FakePeer& peer) {
    peer.read_request();
    peer.wait_for_proceed();
    peer.reset();
  });
  FakeEngine decode([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst");
    peer.wait_for_proceed();
    peer.write("-last");
  });
  serve_pair(prefill.endpoint(), decode.endpoint());
  ask(Api::Chat, kChatRequest);
  ASSERT_TRUE(*answer);
  (*answer)->first_token();
  run_until([&] { return prefill.requests().size() == 1; });
  prefill.proceed();
  wait_for_legs();
  decode.proceed();
  EXPECT_EQ(read_rest(), "first-last");
}

TEST_F(LegsTogether, ThePrefillsUsageIsAwaitedAlsoWhenItsHeadComesAfterTheDecodesAnswer) {
  FakeEngine prefill([](FakePeer& peer) {
    constexpr std::string_view kBody =
        R"({"choices":[{"finish_reason":"length"}],"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":4}}})";
    peer.read_request();
    peer.wait_for_proceed();
    peer.write(fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", kBody.size()));
    peer.wait_for_proceed();
    peer.write(kBody);
  });
  const FakeEngine decode(test::always(response(200, "decoded")));
  serve_pair(prefill.endpoint(), decode.endpoint());
  EXPECT_EQ(ask_and_read(Api::Chat, kChatRequest), "decoded");
  bool awaited = false;
  start([&]() -> awaitable<void> {
    co_await (*answer)->await_prefill(false);
    awaited = true;
  });
  prefill.proceed();
  run_until([&] { return prefill.pauses() == 2; });
  while (io.poll() > 0) continue;  // the head is there to be read
  EXPECT_FALSE(awaited);
  prefill.proceed();
  run_until([&] { return awaited; });
  const auto& usage = (*answer)->prefill()->usage;
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->cached_tokens, 4);
}

TEST_F(LegsTogether, GoOnToOthersWhereOneCannotBeReached) {
  const FakeEngine prefill(test::always(response(200, kMet)));
  const FakeEngine decode(test::always(response(200, "decoded")));
  serve(Engine::Sglang, {{Role::Prefill, test::closed_endpoint()},
                         {Role::Prefill, prefill.endpoint()},
                         {Role::Decode, test::closed_endpoint()},
                         {Role::Decode, decode.endpoint()}});
  EXPECT_EQ(ask_and_read(Api::Chat, kChatRequest), "decoded");
  EXPECT_EQ(trace.prefill.worker, prefill.endpoint().to_string());
  EXPECT_EQ(trace.decode.worker, decode.endpoint().to_string());
}

TEST_F(LegsTogether, FailWhereNobodyCanBeReached) {
  const FakeEngine decode(waits_to_be_dropped());
  serve_pair(test::closed_endpoint(), decode.endpoint());
  ask(Api::Chat, kChatRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::EngineUnreachable);
}

// Regression: vLLM's decode worker, told of a prefill worker that was no longer there, kept its own
// blocks for ever.
TEST_F(LegsTogether, NoDecodeIsAskedWhereItsPrefillCannotBeReached) {
  std::optional<FakeEngine> prefill(std::in_place, test::always(response(200, kMet)));
  std::atomic<bool> asked_again = false;
  std::optional<FakeEngine> decode(std::in_place, [&](FakePeer& peer) {
    peer.read_request();
    peer.write(response(200, "decoded"));
    asked_again = peer.read_request().has_value();  // on a kept connection it goes out at once
  });
  serve_pair(prefill->endpoint(), decode->endpoint());
  EXPECT_EQ(ask_and_read(Api::Chat, kChatRequest), "decoded");
  answer.reset();
  wait_for_legs();
  prefill.reset();
  ask(Api::Chat, kChatRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::EngineUnreachable);
  decode.reset();  // it has read all that it was sent
  EXPECT_FALSE(asked_again);
}

// vLLM's push: the decode worker waits for blocks that the prefill worker writes.
struct Push : HandoffFixture {
  void serve_push(const model::Endpoint& prefill, const model::Endpoint& decode) {
    serve_push(prefill, decode,
               model::NixlPeer{.engine_id = "e-1", .side_channel = {"10.0.0.1", 5600}});
  }
  void serve_push(const model::Endpoint& prefill, const model::Endpoint& decode,
                  std::optional<model::NixlPeer> known) {
    model::WorkerSpec first = spec(Engine::Vllm, Role::Prefill, prefill);
    first.handoff = model::HandoffMode::NixlPush;
    first.nixl = std::move(known);
    model::WorkerSpec second = spec(Engine::Vllm, Role::Decode, decode);
    second.handoff = model::HandoffMode::NixlPush;
    serve({first, second});
  }
};

TEST_F(Push, TellsTheDecodeWorkerWhoWillWriteForWhichRequest) {
  const FakeEngine prefill(test::always(response(200, kKept)));
  const FakeEngine decode(test::always(response(200, "decoded")));
  serve_push(prefill.endpoint(), decode.endpoint());
  EXPECT_EQ(ask_and_read(Api::Chat, kChatRequest), "decoded");
  wait_for_legs();
  const auto params = json(decode.requests()[0].body)["kv_transfer_params"];
  EXPECT_EQ(params["remote_engine_id"], "e-1");
  EXPECT_EQ(params["remote_request_id"], id_of(decode.requests()[0]));
  EXPECT_EQ(params["remote_request_id"], id_of(prefill.requests()[0]));
  EXPECT_THAT(id_of(prefill.requests()[0]), testing::StartsWith("id-1-"));
}

// The workers find each other by it, and a client may send the same one twice.
TEST_F(Push, DoesNotTrustAClientsRequestIdToBeUnique) {
  const FakeEngine prefill(test::always(response(200, kKept)));
  const FakeEngine decode(test::always(response(200, "decoded")));
  serve_push(prefill.endpoint(), decode.endpoint());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ask_and_read(Api::Chat, kChatRequest), "decoded");
    wait_for_legs();
  }
  ASSERT_EQ(prefill.requests().size(), 2U);
  EXPECT_NE(id_of(prefill.requests()[0]), id_of(prefill.requests()[1]));
}

// Mends prefill-router.md §2.1 step 13a, where a Terminal of this kind is only logged.
TEST_F(Push, APrefillThatEndsTheRequestClosesTheDecodeAndIsTheAnswer) {
  for (const bool after_head : {false, true}) {
    const std::string ended = R"({"choices":[{"finish_reason":"stop","text":"all"}]})";
    FakeEngine prefill(answers_when_told(response(200, ended)));
    const FakeEngine decode([after_head](FakePeer& peer) {
      peer.read_request();
      if (after_head) peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
      peer.wait_for_drop();
    });
    config.models.clear();
    serve_push(prefill.endpoint(), decode.endpoint());
    begin(Api::Completions, R"({"model":"m","prompt":"p"})");
    run_until([&] { return prefill.pauses() == 1 && decode.requests().size() == 1; });
    if (after_head) wait_for_answer();
    prefill.proceed();
    wait_for_answer();
    ASSERT_TRUE(*answer) << answer->error().message();
    EXPECT_EQ(read_rest(), ended);
    EXPECT_TRUE(decode.wait_for_drops(1));
    answer.reset();
    wait_for_legs();
    EXPECT_EQ(in_flight(), 0);
    EXPECT_EQ(trace.retries, 0U);
    EXPECT_EQ(worker(decode.endpoint()).condition(), fleet::Condition::New);
  }
}

// vLLM keeps the blocks of a request that has ended, too. The decode worker has told the prefill
// worker where to write them, and that happens though its leg is closed.
TEST_F(Push, APrefillThatEndsTheRequestHasItsBlocksTakenByTheDecodeThatWaitsForThem) {
  FakeEngine prefill(answers_when_told(
      response(200, R"({"choices":[{"finish_reason":"stop"}],"kv_transfer_params":{"a":1}})")));
  const FakeEngine decode(waits_to_be_dropped());
  serve_push(prefill.endpoint(), decode.endpoint());
  begin(Api::Completions, kRequest);
  run_until([&] { return prefill.pauses() == 1 && decode.requests().size() == 1; });
  prefill.proceed();
  wait_for_answer();
  ASSERT_TRUE(*answer) << answer->error().message();
  EXPECT_EQ(read_rest(), R"({"choices":[{"finish_reason":"stop"}]})");
  answer.reset();
  wait_for_legs();
  EXPECT_EQ(decode.requests().size(), 1U) << "a second leg would wait for ever";
  EXPECT_EQ(counters.releases.value(), 0U);
}

TEST_F(Push, APrefillWithoutAConnectorFailsAndClosesTheDecode) {
  FakeEngine prefill(answers_when_told(response(200, kMet)));
  const FakeEngine decode(waits_to_be_dropped());
  options.retries = 0;
  serve_push(prefill.endpoint(), decode.endpoint());
  begin(Api::Completions, kRequest);
  run_until([&] { return prefill.pauses() == 1 && decode.requests().size() == 1; });
  prefill.proceed();
  wait_for_answer();
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::NoHandoff);
  EXPECT_TRUE(decode.wait_for_drops(1));
}

TEST_F(Push, BlocksOfAPrefillWhoseDecodeFailedAreReleased) {
  const FakeEngine prefill(test::always(response(200, kKept)));
  FakeEngine full(answers_when_told(response(400, R"({"message":"no"})")));
  serve_push(prefill.endpoint(), full.endpoint());
  begin(Api::Chat, kChatRequest);
  run_until([&] { return full.pauses() == 1 && trace.prefill.done.has_value(); });
  full.proceed();
  wait_for_answer();
  ASSERT_FALSE(*answer);
  EXPECT_EQ(answer->error().message(), "no");
  for (int attempt = 0; attempt < 5; ++attempt) full.proceed();
  wait_for_legs();
  EXPECT_EQ(counters.releases.value(), 1U);
  EXPECT_GE(full.requests().size(), 2U);
}

// What an engine does with its n-th request, counted from 1.
FakeEngine::Script one_by_one(std::function<void(FakePeer&, int)> answer) {
  auto asked = std::make_shared<std::atomic<int>>(0);
  return [asked, answer = std::move(answer)](FakePeer& peer) {
    while (peer.read_request()) answer(peer, ++*asked);
  };
}

// Its n-th answer says that it is e-n.
FakeEngine::Script begins_anew_each_time() {
  return one_by_one([](FakePeer& peer, int n) {
    peer.write(response(
        200, fmt::format(R"({{"choices":[{{"finish_reason":"length"}}],"kv_transfer_params":{{)"
                         R"("remote_engine_id":"e-{}","remote_host":"h","remote_port":5600}}}})",
                         n)));
  });
}

TEST_F(Push, APrefillWorkerThatBeganAnewIsAskedWhoItIsBeforeItsOnlyPartnerIsGivenUp) {
  const FakeEngine prefill(begins_anew_each_time());
  const FakeEngine decode(one_by_one([](FakePeer& peer, int n) {
    peer.write(n == 2 ? response(500, "who?") : response(200, "decoded"));
  }));
  serve_push(prefill.endpoint(), decode.endpoint(), std::nullopt);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ask_and_read(Api::Chat, kChatRequest), "decoded");
  answer.reset();
  EXPECT_EQ(trace.retries, 1U);
  wait_for_legs();
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(Push, TwoThatFailAfterTheyWereIntroducedAnewDoNotMeetOnceMore) {
  const FakeEngine prefill(begins_anew_each_time());
  const FakeEngine decode([asked = std::make_shared<std::atomic<int>>(0)](FakePeer& peer) {
    while (const auto request = peer.read_request()) {
      const bool good = ++*asked == 1 || json(request->body)["stream"] == false;  // a release
      peer.write(good ? response(200, "decoded") : response(500, "no"));
    }
  });
  options.retries = 5;
  serve_push(prefill.endpoint(), decode.endpoint(), std::nullopt);
  EXPECT_EQ(ask_and_read(Api::Chat, kChatRequest), "decoded");
  EXPECT_EQ(ask_and_read(Api::Chat, kChatRequest), "failed: the engine failed with status 500: no");
  EXPECT_EQ(trace.retries, 1U);
  wait_for_legs();
}

TEST_F(Push, BlocksOfAPrefillWorkerThatBeganAnewAreReleasedByItsNewName) {
  const FakeEngine prefill(begins_anew_each_time());
  FakeEngine decode(one_by_one([](FakePeer& peer, int n) {
    if (n == 2) peer.wait_for_proceed();
    peer.write(n == 2 ? response(500, R"({"error":{"type":"InternalServerError"}})")
                      : response(200, "decoded"));
  }));
  options.retries = 0;
  serve_push(prefill.endpoint(), decode.endpoint(), std::nullopt);
  EXPECT_EQ(ask_and_read(Api::Chat, kChatRequest), "decoded");
  wait_for_legs();

  trace = {};
  begin(Api::Chat, kChatRequest);
  run_until([&] { return decode.pauses() == 1 && trace.prefill.done.has_value(); });
  decode.proceed();
  wait_for_answer();
  EXPECT_FALSE(*answer);
  wait_for_legs();
  ASSERT_EQ(decode.requests().size(), 3U);
  const auto told = [&](std::size_t i) {
    return json(decode.requests()[i].body)["kv_transfer_params"]["remote_engine_id"];
  };
  EXPECT_EQ(told(1), "e-1") << "as it said the last time";
  EXPECT_EQ(told(2), "e-2") << "as it says now";
  EXPECT_EQ(id_of(decode.requests()[2]), id_of(prefill.requests()[1]));
}

// A decode worker that failed may have told the prefill worker where to write.
TEST_F(Push, BlocksOfAPrefillWhoseDecodeMayHaveRegisteredAreNotAskedForAgain) {
  const FakeEngine prefill(test::always(response(200, kKept)));
  FakeEngine broken([](FakePeer& peer) {
    peer.read_request();
    peer.wait_for_proceed();
  });
  options.retries = 0;
  serve_push(prefill.endpoint(), broken.endpoint());
  begin(Api::Chat, kChatRequest);
  run_until([&] { return broken.pauses() == 1 && trace.prefill.done.has_value(); });
  broken.proceed();
  wait_for_answer();
  EXPECT_FALSE(*answer);
  wait_for_legs();
  EXPECT_EQ(counters.releases.value(), 0U);
}

TEST_F(Push, AReleaseThatTakesLongerThanTheGraceIsNotSentAgain) {
  const FakeEngine prefill(test::always(response(200, kKept)));
  FakeEngine decode(one_by_one([](FakePeer& peer, int n) {
    peer.wait_for_proceed();
    peer.write(n == 1 ? response(400, R"({"message":"no"})") : response(200, "released"));
  }));
  grace = std::chrono::milliseconds(20);
  serve_push(prefill.endpoint(), decode.endpoint());
  begin(Api::Chat, kChatRequest);
  run_until([&] { return decode.pauses() == 1 && trace.prefill.done.has_value(); });
  decode.proceed();
  wait_for_answer();
  run_until([&] { return decode.pauses() == 2; });
  run_for(std::chrono::milliseconds(200));
  EXPECT_EQ(decode.drops(), 0U);
  decode.proceed();
  wait_for_legs();
  EXPECT_EQ(decode.requests().size(), 2U);
  EXPECT_EQ(counters.releases.value(), 1U);
}

}  // namespace
}  // namespace baton::handoff
