// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// What follows from failures where the prefill comes first; session_together_test.cc has the modes
// whose legs run side by side, session_abandoned_test.cc has clients that leave.
#include "handoff/session.h"

#include "support/no_descriptors.h"
#include "unit/handoff/handoff_fixture.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

namespace baton::handoff {
namespace {

using engine::Api;
using model::OnPrefillFailure;
using test::FakeEngine;
using test::FakePeer;
using test::response;
using testing::HasSubstr;

constexpr const char* kKeptWithUsage =
    R"({"choices":[{"finish_reason":"length"}],"kv_transfer_params":{"remote_port":5600},)"
    R"("usage":{"prompt_tokens":9,"completion_tokens":1}})";

bool says(const test::SeenRequest& request, const std::string& line) {
  return request.head.find(line + "\r\n") != std::string::npos;
}

struct SessionTest : HandoffFixture {
  // Round robin: the first of each role is tried first.
  void serve_vllm(const std::vector<model::Endpoint>& prefills,
                  const std::vector<model::Endpoint>& decodes) {
    std::vector<std::pair<Role, model::Endpoint>> all;
    for (const auto& one : prefills) all.emplace_back(Role::Prefill, one);
    for (const auto& one : decodes) all.emplace_back(Role::Decode, one);
    serve(Engine::Vllm, all);
  }
  FakeEngine prefill{test::always(response(200, kKeptWithUsage))};
  FakeEngine decode{test::always(response(200, "decoded"))};
};

TEST_F(SessionTest, NoWorkerIsBlamedWhereThisMachineHasNoDescriptors) {
  serve_vllm({prefill.endpoint()}, {decode.endpoint()});
  const auto before = worker(prefill.endpoint()).condition();
  {
    const test::NoDescriptors none;
    ask(Api::Completions, kRequest);
  }
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::OutOfResources);
  EXPECT_EQ(answer->error().http_status(), 503);
  wait_for_legs();
  EXPECT_EQ(worker(prefill.endpoint()).condition(), before);
  EXPECT_EQ(worker(decode.endpoint()).condition(), before);
  EXPECT_EQ(worker(prefill.endpoint()).health().why(), "");
  EXPECT_EQ(in_flight(), 0);
  EXPECT_EQ(ask_and_read(Api::Completions, kRequest), "decoded");
}

TEST_F(SessionTest, NoWorkerIsBlamedWhereItsAnswerHasNoRoomInMemory) {
  const std::string filler(200'000, ' ');
  const FakeEngine wordy(test::always(response(200, kKeptWithUsage + filler)));
  serve_vllm({wordy.endpoint()}, {decode.endpoint()});
  const auto before = worker(wordy.endpoint()).condition();
  {
    MemoryShare others(&memory);
    ASSERT_TRUE(others.cover(memory.limit()));
    ask(Api::Completions, kRequest);
    ASSERT_FALSE(*answer);
    EXPECT_EQ(failure(), Errc::MemoryExhausted);
    EXPECT_TRUE(answer->error().retry_after());
    wait_for_legs();
    EXPECT_EQ(memory.used(), others.held());
  }
  EXPECT_EQ(worker(wordy.endpoint()).condition(), before);
  EXPECT_EQ(worker(wordy.endpoint()).health().why(), "");
  EXPECT_EQ(decode.requests().size(), 0U);
  EXPECT_EQ(in_flight(), 0);
  EXPECT_EQ(ask_and_read(Api::Completions, kRequest), "decoded");
  answer.reset();
  wait_for_legs();
  EXPECT_EQ(memory.used(), 0U);
}

TEST_F(SessionTest, OfALongRefusalOnlyTheStatusIsPassedOn) {
  const FakeEngine short_one(test::always(response(422, std::string(1'000'000, 'x'))));
  const FakeEngine long_one(test::always(response(422, std::string(1'100'000, 'x'))));
  serve_vllm({short_one.endpoint(), long_one.endpoint()}, {decode.endpoint()});
  for (const std::size_t quoted : {std::size_t{1'000'000}, std::size_t{0}}) {
    ask(Api::Completions, kRequest);
    ASSERT_FALSE(*answer);
    EXPECT_EQ(failure(), Errc::EngineRejected);
    EXPECT_EQ(answer->error().http_status(), 422);
    const auto& reply = answer->error().reply();
    EXPECT_EQ(reply ? reply->body.size() : 0, quoted);
    wait_for_legs();
  }
}

TEST_F(SessionTest, AFailedPrefillIsRepeatedOnAnotherWorkerUnderAnotherId) {
  const struct {
    const char* what;
    FakeEngine::Script script;
  } cases[] = {
      {"500", test::always(response(500, "boom"))},
      {"503", test::always(response(503, "full"))},
      {"reset",
       [](FakePeer& peer) {
         peer.read_request();
         peer.reset();
       }},
      {"closed", [](FakePeer& peer) { peer.read_request(); }},
      {"garbage", test::always("SSH-2.0-OpenSSH\r\n\r\n")},
      {"no JSON", test::always(response(200, "<html>"))},
      {"cut",
       [](FakePeer& peer) {
         peer.read_request();
         peer.write("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{");
       }},
  };
  for (const auto& c : cases) {
    const FakeEngine failing(c.script);
    config.models.clear();
    const std::size_t before = prefill.requests().size();
    serve_vllm({failing.endpoint(), prefill.endpoint()}, {decode.endpoint()});
    EXPECT_EQ(ask_and_read(Api::Completions, kRequest), "decoded") << c.what;
    ASSERT_EQ(failing.requests().size(), 1U) << c.what;
    EXPECT_TRUE(says(failing.requests()[0], "X-Request-Id: id-1")) << c.what;
    ASSERT_EQ(prefill.requests().size(), before + 1) << c.what;
    EXPECT_TRUE(says(prefill.requests().back(), "X-Request-Id: id-1-r1")) << c.what;
    EXPECT_TRUE(says(decode.requests().back(), "X-Request-Id: id-1-r1")) << c.what;
    EXPECT_EQ(trace.prefill.worker, prefill.endpoint().to_string());
    answer.reset();
    EXPECT_EQ(trace.retries, 1U) << c.what;
    EXPECT_EQ(in_flight(), 0) << c.what;
  }
  EXPECT_EQ(counters.retries.value(), std::size(cases));
}

TEST_F(SessionTest, AnUnreachablePrefillIsRepeatedAndNotAskedAgain) {
  const model::Endpoint nobody = test::closed_endpoint();
  serve_vllm({nobody, prefill.endpoint()}, {decode.endpoint()});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask_and_read(Api::Completions, kRequest), "decoded");
  EXPECT_EQ(worker(nobody).condition(), fleet::Condition::Unreachable);
  answer.reset();
  EXPECT_EQ(counters.retries.value(), 1U);
}

TEST_F(SessionTest, WhatIsTheRequestsOwnFaultIsNotRepeated) {
  const FakeEngine refusing(test::always(response(400, R"({"message":"too long"})")));
  options.on_prefill_failure = OnPrefillFailure::Fallback;
  serve_vllm({refusing.endpoint(), prefill.endpoint()}, {decode.endpoint()});
  ask(Api::Completions, kRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(answer->error().message(), "too long");
  EXPECT_TRUE(prefill.requests().empty());
  EXPECT_TRUE(decode.requests().empty());
}

TEST_F(SessionTest, AttemptsAreCounted) {
  options.retries = 1;
  const FakeEngine first(test::always(response(500, "first")));
  const FakeEngine second(test::always(response(500, "second")));
  serve_vllm({first.endpoint(), second.endpoint(), prefill.endpoint()}, {decode.endpoint()});
  ask(Api::Completions, kRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::EngineFailed);
  EXPECT_THAT(answer->error().message(), HasSubstr("second"));
  EXPECT_TRUE(prefill.requests().empty());
}

TEST_F(SessionTest, SaysWhyTheLastPrefillFailedWhereNobodyElseIsLeft) {
  const FakeEngine failing(test::always(response(500, "boom")));
  serve_vllm({failing.endpoint()}, {decode.endpoint()});
  ask(Api::Completions, kRequest);
  ASSERT_FALSE(*answer);
  EXPECT_THAT(answer->error().message(), HasSubstr("boom"));
  EXPECT_TRUE(decode.requests().empty());
}

TEST_F(SessionTest, WithFallbackADecodeWorkerServesAloneInTheEnd) {
  options.on_prefill_failure = OnPrefillFailure::Fallback;
  const FakeEngine failing(test::always(response(500, "boom")));
  serve_vllm({failing.endpoint()}, {decode.endpoint()});
  EXPECT_EQ(ask_and_read(Api::Completions, kRequest), "decoded");
  EXPECT_FALSE((*answer)->handed_off());
  EXPECT_EQ(decode.requests()[0].body, kRequest);
  EXPECT_EQ(trace.prefill.worker, "") << "it is not who served";
}

TEST_F(SessionTest, WithFallbackADecodeWorkerThatCannotFetchServesAloneInTheEnd) {
  options.on_prefill_failure = OnPrefillFailure::Fallback;
  const FakeEngine unable(cannot_fetch_first(response(200, "computed")));
  serve_vllm({prefill.endpoint()}, {unable.endpoint()});
  EXPECT_EQ(ask_and_read(Api::Completions, kRequest), "computed");
  EXPECT_FALSE((*answer)->handed_off());
  wait_for_legs();
  EXPECT_EQ(counters.releases.value(), 1U);
}

TEST_F(SessionTest, ADecodeWorkerThatCannotFetchIsAskedAgainWithAnotherPrefillWorker) {
  const FakeEngine unable(cannot_fetch_first(response(200, "decoded")));
  const FakeEngine other(test::always(response(200, kKeptWithUsage)));
  serve_vllm({prefill.endpoint(), other.endpoint()}, {unable.endpoint()});
  EXPECT_EQ(ask_and_read(Api::Completions, kRequest), "decoded");
  EXPECT_TRUE((*answer)->handed_off());
  EXPECT_EQ(trace.prefill.worker, other.endpoint().to_string());
  wait_for_legs();
  EXPECT_EQ(counters.releases.value(), 1U) << "what the first one kept";
}

TEST_F(SessionTest, WithFallbackAnSglangDecodeWorkerCannotServeAlone) {
  options.on_prefill_failure = OnPrefillFailure::Fallback;
  const FakeEngine failing(test::always(response(500, "boom")));
  const FakeEngine waiting(waits_to_be_dropped());
  serve(Engine::Sglang, {{Role::Prefill, failing.endpoint()}, {Role::Decode, waiting.endpoint()}});
  ask(Api::Completions, kRequest);
  ASSERT_FALSE(*answer);
  EXPECT_THAT(answer->error().message(), HasSubstr("boom"));
  EXPECT_LE(waiting.requests().size(), 1U);
}

TEST_F(SessionTest, WithFailTheFirstFailureIsFinal) {
  options.on_prefill_failure = OnPrefillFailure::Fail;
  const FakeEngine failing(test::always(response(500, "boom")));
  serve_vllm({failing.endpoint(), prefill.endpoint()}, {decode.endpoint()});
  ask(Api::Completions, kRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::EngineFailed);
  EXPECT_TRUE(prefill.requests().empty());
  EXPECT_TRUE(decode.requests().empty());
}

// prefill-router.md §1.3, NotActivated.
TEST_F(SessionTest, SaysThatARequiredPrefillIsNotThere) {
  options.disaggregation = model::Disaggregation::Required;
  serve_vllm({}, {decode.endpoint()});
  ask(Api::Completions, kRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::PrefillUnavailable);
  EXPECT_TRUE(answer->error().retry_after());
  EXPECT_TRUE(decode.requests().empty());
}

TEST_F(SessionTest, ADecodeThatIsFullIsReplacedByAnotherWithTheSameHandoff) {
  const FakeEngine full(test::always(response(503, "full")));
  serve_vllm({prefill.endpoint()}, {full.endpoint(), decode.endpoint()});
  EXPECT_EQ(ask_and_read(Api::Completions, kRequest), "decoded");
  EXPECT_EQ(prefill.requests().size(), 1U);
  EXPECT_EQ(json(full.requests()[0].body), json(decode.requests()[0].body));
  EXPECT_EQ(json(decode.requests()[0].body)["kv_transfer_params"]["remote_port"], 5600);
  EXPECT_TRUE(says(decode.requests()[0], "X-Request-Id: id-1"));
  EXPECT_EQ(counters.releases.value(), 0U);
  EXPECT_EQ(trace.decode.worker, decode.endpoint().to_string());
}

TEST_F(SessionTest, ADecodeThatCannotBeReachedIsReplacedByAnotherWithTheSameHandoff) {
  serve_vllm({prefill.endpoint()}, {test::closed_endpoint(), decode.endpoint()});
  EXPECT_EQ(ask_and_read(Api::Completions, kRequest), "decoded");
  EXPECT_EQ(prefill.requests().size(), 1U);
  EXPECT_EQ(counters.releases.value(), 0U);
}

// It may have fetched the blocks, or some: nobody else can be told to.
TEST_F(SessionTest, ADecodeThatBreaksBeforeItsFirstTokenHasTheBlocksReleasedAndAllRepeated) {
  for (const bool after_head : {true, false}) {
    const FakeEngine breaking([after_head](FakePeer& peer) {
      peer.read_request();
      if (after_head) peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
    });
    const FakeEngine first(test::always(response(200, kKeptWithUsage)));
    const FakeEngine other(test::always(response(200, "decoded")));
    config.models.clear();
    serve_vllm({first.endpoint()}, {breaking.endpoint(), other.endpoint()});
    EXPECT_EQ(ask_and_read(Api::Completions, kRequest), "decoded");
    answer.reset();
    wait_for_legs();
    ASSERT_EQ(first.requests().size(), 2U);
    EXPECT_TRUE(says(first.requests()[0], "X-Request-Id: id-1"));
    EXPECT_TRUE(says(first.requests()[1], "X-Request-Id: id-1-r1"));
    ASSERT_EQ(breaking.requests().size(), 1U);
    ASSERT_EQ(other.requests().size(), 2U) << "the release and the answer, in any order";
    const auto all = other.requests();
    const bool release_first = json(all[0].body)["max_tokens"] == 1;
    const auto& release = all[release_first ? 0 : 1];
    const auto& repeated = all[release_first ? 1 : 0];
    EXPECT_EQ(json(release.body)["max_tokens"], 1);
    EXPECT_EQ(json(release.body)["stream"], false);
    EXPECT_TRUE(says(release, "X-Request-Id: id-1"));
    EXPECT_EQ(json(repeated.body)["max_tokens"], 50);
    EXPECT_TRUE(says(repeated, "X-Request-Id: id-1-r1"));
    EXPECT_EQ(in_flight(), 0);
  }
  EXPECT_EQ(counters.releases.value(), 2U);
  EXPECT_EQ(counters.wasted_prefill_tokens.value(), 18U) << "what was computed twice";
}

TEST_F(SessionTest, AnotherSuccessThan200IsAFailureOfTheWorker) {
  release_for = std::chrono::milliseconds(1);  // there is nobody else to release it
  for (const int status : {201, 202, 204, 206}) {
    const FakeEngine odd(test::always(response(status, status == 204 ? "" : "half")));
    config.models.clear();
    serve_vllm({prefill.endpoint()}, {odd.endpoint()});
    ask(Api::Completions, kRequest);
    ASSERT_FALSE(*answer) << status;
    EXPECT_EQ(answer->error().code(), Errc::EngineFailed);
    EXPECT_THAT(answer->error().message(), testing::HasSubstr(std::to_string(status)));
    answer.reset();
    wait_for_legs();
  }
}

TEST_F(SessionTest, ARequestWhoseNamespaceLosesItsDecodeWorkersIsServedInAnother) {
  FakeEngine blue(answers_when_told(response(200, kKept)));
  const FakeEngine blue_decode(test::always(response(200, "of blue")));
  serve(std::vector<model::WorkerSpec>{});
  const auto announce = [this](const char* name_space, Role role, const FakeEngine& engine) {
    model::WorkerSpec one = spec(Engine::Vllm, role, engine.endpoint());
    one.name_space = name_space;
    fleet->announce(fleet::Origin::Etcd, engine.endpoint().to_string(),
                    {.model = "m", .spec = one});
  };
  announce("blue", Role::Prefill, blue);
  announce("blue", Role::Decode, blue_decode);
  begin(Api::Completions, kRequest);
  run_until([&] { return blue.requests().size() == 1; });
  announce("green", Role::Prefill, prefill);
  announce("green", Role::Decode, decode);
  fleet->withdraw(fleet::Origin::Etcd, blue_decode.endpoint().to_string());
  blue.proceed();
  wait_for_answer();
  ASSERT_TRUE(*answer) << answer->error().message();
  EXPECT_EQ(read_rest(), "decoded");
  EXPECT_TRUE(says(prefill.requests()[0], "X-Request-Id: id-1-r1"));
  answer.reset();
  EXPECT_EQ(trace.retries, 1U);
  EXPECT_TRUE(blue_decode.requests().empty());
  wait_for_legs();  // the release finds nobody who could take the blocks, and gives up
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(SessionTest, ADecodeThatRefusesTheRequestHasTheBlocksReleased) {
  const FakeEngine refusing(test::always(response(400, R"({"message":"bad n"})")));
  serve_vllm({prefill.endpoint()}, {refusing.endpoint(), decode.endpoint()});
  ask(Api::Completions, kRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(answer->error().message(), "bad n");
  wait_for_legs();
  ASSERT_EQ(decode.requests().size(), 1U);
  EXPECT_EQ(json(decode.requests()[0].body)["max_tokens"], 1);
  EXPECT_EQ(in_flight(), 0);
}

// vLLM's own server tells the prefill worker of requests that it refuses, or that fail in it.
TEST_F(SessionTest, ADecodeThatRefusesTheRequestAndFreesTheBlocksIsNotFollowedByARelease) {
  const struct {
    int status;
    const char* type;
    std::uint64_t releases;
  } cases[] = {{400, "BadRequestError", 0},
               {404, "NotFoundError", 0},
               {400, "Bad Request", 1},
               {500, "InternalServerError", 0},
               {503, "ServiceUnavailableError", 1}};
  options.retries = 0;
  for (const auto& [status, type, releases] : cases) {
    const FakeEngine refusing(test::always(
        response(status, fmt::format(R"({{"error":{{"message":"no","type":"{}"}}}})", type))));
    config.models.clear();
    serve_vllm({prefill.endpoint()}, {refusing.endpoint(), decode.endpoint()});
    const auto before = counters.releases.value();
    ask(Api::Completions, kRequest);
    ASSERT_FALSE(*answer) << status << " " << type;
    wait_for_legs();
    EXPECT_EQ(counters.releases.value() - before, releases)
        << status << " " << type << ": " << answer->error().message();
  }
  EXPECT_EQ(decode.requests().size(), 2U);
}

TEST_F(SessionTest, AReleaseThatTakesLongerThanTheGraceIsNotSentAgain) {
  const FakeEngine refusing(test::always(response(400, R"({"message":"bad n"})")));
  FakeEngine slow(answers_when_told(response(200, "released")));
  grace = std::chrono::milliseconds(20);
  serve_vllm({prefill.endpoint()}, {refusing.endpoint(), slow.endpoint()});
  ask(Api::Completions, kRequest);
  EXPECT_FALSE(*answer);
  run_until([&] { return slow.pauses() == 1; });
  run_for(std::chrono::milliseconds(200));
  EXPECT_EQ(slow.drops(), 0U);
  slow.proceed();
  wait_for_legs();
  EXPECT_EQ(slow.requests().size(), 1U);
}

// Whether blocks are held is told by the parameters, not by how the request ended.
TEST_F(SessionTest, APrefillThatEndsTheRequestHasItsBlocksReleased) {
  const FakeEngine ending(test::always(
      response(200, R"({"choices":[{"finish_reason":"stop"}],"kv_transfer_params":{"a":1}})")));
  serve_vllm({ending.endpoint()}, {decode.endpoint()});
  ask(Api::Completions, kRequest);
  ASSERT_TRUE(*answer);
  EXPECT_EQ(read_rest(), R"({"choices":[{"finish_reason":"stop"}]})");
  wait_for_legs();
  ASSERT_EQ(decode.requests().size(), 1U);
  const auto release = json(decode.requests()[0].body);
  EXPECT_EQ(release["max_tokens"], 1);
  EXPECT_EQ(release["kv_transfer_params"], json(R"({"a":1})"));
  EXPECT_EQ(counters.releases.value(), 1U);
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(SessionTest, BlocksThatNobodyCanTakeNowAreReleasedOnceSomebodyCan) {
  FakeEngine ending(answers_when_told(
      response(200, R"({"choices":[{"finish_reason":"stop"}],"kv_transfer_params":{"a":1}})")));
  release_for = std::chrono::minutes(1);
  serve_vllm({ending.endpoint()}, {decode.endpoint()});
  const auto everybody = config.models;
  auto without_decode = everybody;
  std::erase_if(without_decode.front().workers,
                [](const model::WorkerSpec& worker) { return worker.role == Role::Decode; });
  begin(Api::Completions, kRequest);
  run_until([&] { return ending.pauses() == 1; });
  fleet->configure(without_decode);
  ending.proceed();
  run_until([this] { return answer.has_value(); });
  ASSERT_TRUE(*answer);
  answer.reset();
  run_until([this] { return counters.releases.value() == 1; });
  EXPECT_TRUE(decode.requests().empty());
  fleet->configure(everybody);
  wait_for_legs();
  ASSERT_EQ(decode.requests().size(), 1U);
  EXPECT_EQ(json(decode.requests()[0].body)["max_tokens"], 1);
}

// The process ends: nobody waits for somebody who may not come.
TEST_F(SessionTest, BlocksThatNobodyCanTakeAreLeftToTheirLeaseWhenTheProcessEnds) {
  FakeEngine ending(answers_when_told(
      response(200, R"({"choices":[{"finish_reason":"stop"}],"kv_transfer_params":{"a":1}})")));
  release_for = std::chrono::hours(1);
  serve_vllm({ending.endpoint()}, {decode.endpoint()});
  auto without_decode = config.models;
  std::erase_if(without_decode.front().workers,
                [](const model::WorkerSpec& worker) { return worker.role == Role::Decode; });
  begin(Api::Completions, kRequest);
  run_until([&] { return ending.pauses() == 1; });
  fleet->configure(without_decode);
  ending.proceed();
  run_until([this] { return counters.releases.value() == 1; });
  answer.reset();
  handoff->finish();
  wait_for_legs();
  EXPECT_TRUE(decode.requests().empty());
}

TEST_F(SessionTest, APrefillWhoseReasonNobodyKnowsIsHandedOverByItsParameters) {
  const FakeEngine odd(test::always(response(
      200, R"({"choices":[{"finish_reason":"remote_decode"}],"kv_transfer_params":{"a":1}})")));
  serve_vllm({odd.endpoint()}, {decode.endpoint()});
  EXPECT_EQ(ask_and_read(Api::Completions, kRequest), "decoded");
  EXPECT_EQ(json(decode.requests()[0].body)["kv_transfer_params"], json(R"({"a":1})"));
}

TEST_F(SessionTest, APrefillWhoseReasonNobodyKnowsIsNoSuccessWithoutParameters) {
  const FakeEngine odd(
      test::always(response(200, R"({"choices":[{"finish_reason":"remote_decode"}]})")));
  options.retries = 0;
  serve_vllm({odd.endpoint()}, {decode.endpoint()});
  ask(Api::Completions, kRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::EngineProtocol);
  EXPECT_THAT(answer->error().message(), HasSubstr("\"remote_decode\""));
}

TEST_F(SessionTest, APrefillThatKeepsNothingIsMisconfiguredAndTheDecodeComputesThePrompt) {
  const FakeEngine plain(test::always(
      response(200, R"({"choices":[{"finish_reason":"length"}],"kv_transfer_params":null})")));
  serve_vllm({plain.endpoint()}, {decode.endpoint()});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ask_and_read(Api::Completions, kRequest), "decoded");
  EXPECT_EQ(worker(plain.endpoint()).condition(), fleet::Condition::Misconfigured);
  EXPECT_THAT(worker(plain.endpoint()).health().why(), HasSubstr("--kv-transfer-config"));
  EXPECT_EQ(plain.requests().size(), 1U) << "it is not asked again";
}

TEST_F(SessionTest, AWorkerThatDoesBothIsReplacedByAnother) {
  const FakeEngine failing(test::always(response(500, "boom")));
  serve(Engine::Vllm,
        {{Role::Aggregated, failing.endpoint()}, {Role::Aggregated, decode.endpoint()}});
  EXPECT_EQ(ask_and_read(Api::Completions, kRequest), "decoded");
  answer.reset();
  EXPECT_EQ(trace.retries, 1U);
}

TEST_F(SessionTest, AfterTheFirstTokenThereIsNoOtherWorkerWithoutMigration) {
  const FakeEngine breaking([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfirst");
  });
  serve_vllm({prefill.endpoint()}, {breaking.endpoint(), decode.endpoint()});
  EXPECT_THAT(ask_and_read(Api::Completions, kRequest), HasSubstr("failed: "));
  EXPECT_TRUE(decode.requests().empty());
  EXPECT_EQ(counters.releases.value(), 0U) << "the first token shows that they were fetched";
}

TEST_F(SessionTest, AfterTheFirstTokenAMigrationContinuesFromWhatTheClientHas) {
  options.migration = 1;
  const FakeEngine breaking([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfirst");
  });
  serve_vllm({prefill.endpoint()}, {breaking.endpoint(), decode.endpoint()});
  HandoffRequest continuable = job(Api::Completions, kRequest);
  continuable.continuable = true;
  begin(continuable);
  wait_for_answer();
  ASSERT_TRUE(*answer);
  run([&]() -> awaitable<void> {
    UpstreamResponse& got = **answer;
    EXPECT_TRUE(co_await got.stream().read());
    got.first_token();
    const auto broken = co_await got.stream().read();
    EXPECT_FALSE(broken);
    const engine::Progress progress{
        .prompt_token_ids = "[1,2,3]", .token_ids = "7,8", .produced = 2};
    EXPECT_TRUE(co_await got.recover(broken.error(), &progress));
  });
  EXPECT_EQ(read_rest(), "decoded");
  ASSERT_EQ(prefill.requests().size(), 2U);
  const auto again = json(prefill.requests()[1].body);
  EXPECT_EQ(again["prompt"], json("[1,2,3,7,8]"));
  EXPECT_TRUE(says(prefill.requests()[1], "X-Request-Id: id-1-r1"));
  const auto rest = json(decode.requests()[0].body);
  EXPECT_EQ(rest["prompt"], json("[1,2,3,7,8]"));
  EXPECT_EQ(rest["max_tokens"], 48) << "two of the fifty are there";
  answer.reset();
  EXPECT_EQ(trace.migrations, 1U);
  EXPECT_EQ(trace.retries, 0U);
  EXPECT_EQ(counters.migrations.value(), 1U);
}

// The pace of transfers is known after five of them; each of the three requests has two.
TEST_F(SessionTest, TheTransferOfAMigratedHandoffIsMeasuredToo) {
  options.migration = 1;
  const FakeEngine breaking([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfirst");
  });
  serve_vllm({prefill.endpoint()}, {breaking.endpoint(), decode.endpoint()});
  for (int i = 0; i < 3; ++i) {
    HandoffRequest continuable = job(Api::Completions, kRequest);
    continuable.continuable = true;
    continuable.prompt_tokens = 1'000;
    trace = {};
    begin(continuable);
    wait_for_answer();
    ASSERT_TRUE(*answer);
    run([&]() -> awaitable<void> {
      UpstreamResponse& got = **answer;
      EXPECT_TRUE(co_await got.stream().read());
      got.first_token();
      const auto broken = co_await got.stream().read();
      EXPECT_FALSE(broken);
      const engine::Progress progress{
          .prompt_token_ids = "[1,2,3]", .token_ids = "7,8", .produced = 2};
      EXPECT_TRUE(co_await got.recover(broken.error(), &progress));
    });
    EXPECT_EQ(read_rest(), "decoded");
  }
  EXPECT_EQ(breaking.requests().size(), 3U);
  EXPECT_GT(worker(prefill.endpoint()).transfers(0).seconds(1'000, fleet::Clock::now()), 0);
}

TEST_F(SessionTest, AnAnswerThatTookAWrongTurnIsNotMigrated) {
  options.migration = 1;
  const FakeEngine breaking([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfirst");
  });
  serve_vllm({prefill.endpoint()}, {breaking.endpoint(), decode.endpoint()});
  HandoffRequest continuable = job(Api::Completions, kRequest);
  continuable.continuable = true;
  begin(continuable);
  wait_for_answer();
  ASSERT_TRUE(*answer);
  (*answer)->forbid_migration();
  EXPECT_THAT(read_rest(), HasSubstr("failed: "));
  EXPECT_TRUE(decode.requests().empty());
}

}  // namespace
}  // namespace baton::handoff
