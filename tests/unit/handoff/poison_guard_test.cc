// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// Workers whose process ends under a request.
#include "handoff/session.h"
#include "unit/handoff/handoff_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace baton::handoff {
namespace {

using engine::Api;
using test::FakeEngine;
using test::FakePeer;
using test::response;
using testing::HasSubstr;

// Ends with the first request it gets.
void ends(FakePeer& peer) {
  if (peer.read_request()) peer.end_process();
}

// Closes the connection, and lives on.
void hangs_up(FakePeer& peer) {
  peer.read_request();
  peer.reset();
}

struct RunSuspicionTest : HandoffFixture {
  void serve_alone(const std::vector<const FakeEngine*>& engines) {
    std::vector<std::pair<Role, model::Endpoint>> all;
    for (const FakeEngine* one : engines) all.emplace_back(Role::Aggregated, one->endpoint());
    options.retries = 5;
    serve(Engine::Vllm, all);
  }
  std::uint64_t poisoned() { return counters.poison_requests.value(); }
};

TEST_F(RunSuspicionTest, IsRepeatedOnceAndClearedByItsFirstToken) {
  const FakeEngine first(ends);
  const FakeEngine second(test::always(response(200, "served")));
  serve_alone({&first, &second});
  EXPECT_EQ(ask_and_read(Api::Completions, kRequest), "served");
  EXPECT_EQ(poisoned(), 0U);
  EXPECT_TRUE(counters.suspects.none());
}

TEST_F(RunSuspicionTest, IsOfferedToNoThirdWorker) {
  const FakeEngine first(ends);
  const FakeEngine second(ends);
  const FakeEngine third(test::always(response(200, "served")));
  serve_alone({&first, &second, &third});
  ask(Api::Completions, kRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::PoisonRequest);
  EXPECT_TRUE(third.requests().empty());
  EXPECT_EQ(poisoned(), 1U);

  ask(Api::Completions, kRequest);
  EXPECT_EQ(failure(), Errc::PoisonRequest) << "its client repeats it";
  EXPECT_TRUE(third.requests().empty());
  EXPECT_EQ(poisoned(), 2U);

  EXPECT_EQ(ask_and_read(Api::Completions, R"({"model":"m","prompt":"another"})"), "served");
}

TEST_F(RunSuspicionTest, ACopyThatHasEndedAWorkerCounts) {
  const FakeEngine first(ends);
  const FakeEngine second(test::always(response(200, "served")));
  serve_alone({&first, &second});
  const auto before = Suspects::Clock::now();
  counters.suspects.ended(Suspects::request_of(kRequest), model::WorkerId{99}, before, before);
  ask(Api::Completions, kRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::PoisonRequest);
  EXPECT_TRUE(second.requests().empty());
}

TEST_F(RunSuspicionTest, AWorkerThatOnlyHangsUpHasNotEnded) {
  const FakeEngine first(hangs_up);
  const FakeEngine second(hangs_up);
  const FakeEngine third(test::always(response(200, "served")));
  serve_alone({&first, &second, &third});
  EXPECT_EQ(ask_and_read(Api::Completions, kRequest), "served");
  EXPECT_TRUE(counters.suspects.none());
}

TEST_F(RunSuspicionTest, AWorkerThatIsNotThereHasNotEndedUnderIt) {
  const FakeEngine third(test::always(response(200, "served")));
  options.retries = 5;
  serve(Engine::Vllm, {{Role::Aggregated, test::closed_endpoint()},
                       {Role::Aggregated, test::closed_endpoint()},
                       {Role::Aggregated, third.endpoint()}});
  EXPECT_EQ(ask_and_read(Api::Completions, kRequest), "served");
  EXPECT_TRUE(counters.suspects.none());
}

TEST_F(RunSuspicionTest, EndedUnderAKeptConnectionIsSeen) {
  int asked = 0;
  FakeEngine first([&asked](FakePeer& peer) {
    while (peer.read_request()) {
      if (++asked == 2) {
        peer.wait_for_proceed();
        return peer.end_process();
      }
      peer.write(response(200, "served"));
    }
  });
  options.retries = 5;
  serve(Engine::Vllm, {{Role::Aggregated, first.endpoint()}});
  EXPECT_EQ(ask_and_read(Api::Completions, R"({"model":"m","prompt":"before"})"), "served");
  begin(Api::Completions, kRequest);
  run_until([&] { return first.pauses() == 1; });
  run_for(std::chrono::milliseconds(30));  // it takes a while to end of it
  first.proceed();
  wait_for_answer();
  ASSERT_FALSE(*answer);
  EXPECT_EQ(counters.suspects.ends(Suspects::request_of(kRequest), Suspects::Clock::now()), 1U);
}

TEST_F(RunSuspicionTest, AStreamThatHasBegunIsNotSuspect) {
  FakeEngine first([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\ntoken");
    peer.wait_for_proceed();
    peer.end_process();
  });
  serve_alone({&first});
  ask(Api::Completions, kRequest);
  run([&]() -> awaitable<void> {
    const auto piece = co_await (*answer)->stream().read();
    EXPECT_TRUE(piece);
    (*answer)->first_token();
  });
  first.proceed();
  EXPECT_THAT(read_rest(), HasSubstr("failed"));
  EXPECT_TRUE(counters.suspects.none());
}

TEST_F(RunSuspicionTest, OfTwoLegsEachCanEndItsWorker) {
  const FakeEngine prefill(ends);
  const FakeEngine other_prefill(test::always(response(200, kKept)));
  const FakeEngine decode(ends);
  const FakeEngine other_decode(test::always(response(200, "served")));
  options.retries = 5;
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()},
                       {Role::Prefill, other_prefill.endpoint()},
                       {Role::Decode, decode.endpoint()},
                       {Role::Decode, other_decode.endpoint()}});
  ask(Api::Completions, kRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::PoisonRequest);
  wait_for_legs();
  EXPECT_TRUE(other_decode.requests().empty()) << "nor is it sent to release anything";
}

TEST_F(RunSuspicionTest, WhatASuspectLeftIsReleasedOnceItIsCleared) {
  const FakeEngine prefill(test::always(response(200, kKept)));
  const FakeEngine decode(ends);
  const FakeEngine other(test::always(response(200, "served")));
  options.retries = 1;
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()},
                       {Role::Decode, decode.endpoint()},
                       {Role::Decode, other.endpoint()}});
  EXPECT_EQ(ask_and_read(Api::Completions, kRequest), "served");
  wait_for_legs();
  ASSERT_EQ(other.requests().size(), 2U) << "the answer, and only then the release";
  EXPECT_FALSE(json(other.requests()[0].body).contains("max_tokens") &&
               json(other.requests()[0].body)["max_tokens"] == 1);
  EXPECT_EQ(json(other.requests()[1].body)["max_tokens"], 1);
  EXPECT_EQ(counters.releases.value(), 1U);
}

}  // namespace
}  // namespace baton::handoff
