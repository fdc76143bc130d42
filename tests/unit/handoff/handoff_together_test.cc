// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/handoff.h"
#include "unit/handoff/handoff_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

namespace baton::handoff {
namespace {

using namespace std::chrono_literals;
using engine::Api;
using test::FakeEngine;
using test::FakePeer;
using test::response;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kRequest = R"({"model":"m","messages":[],"stream":true})";

// SGLang's order: both legs at once, each needing the other.
struct LegsTogether : HandoffFixture {
  void serve_pair(const model::Endpoint& prefill, const model::Endpoint& decode) {
    serve(Engine::Sglang, {{Role::Prefill, prefill}, {Role::Decode, decode}});
  }
};

FakeEngine::Script waits_to_be_dropped() {
  return [](FakePeer& peer) {
    peer.read_request();
    peer.wait_for_drop();
  };
}

TEST_F(LegsTogether, MeetInOneRoom) {
  const FakeEngine prefill(test::always(response(200, "of no use")));
  const FakeEngine decode(test::always(response(200, "decoded")));
  serve_pair(prefill.endpoint(), decode.endpoint());
  for (int i = 0; i < 2; ++i) {
    ask(Api::Chat, kRequest);
    ASSERT_TRUE(*answer) << answer->error().message();
    EXPECT_EQ(read_rest(), "decoded");
    (*answer)->prefill_delivered();
    run_until([&] { return tasks.running() == 0; });
    answer.reset();
  }
  ASSERT_EQ(prefill.requests().size(), 2U);
  ASSERT_EQ(decode.requests().size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(prefill.requests()[i].body, decode.requests()[i].body);
  }
  const auto first = json(decode.requests()[0].body);
  EXPECT_EQ(first["bootstrap_host"], "127.0.0.1");
  EXPECT_EQ(first["bootstrap_port"], 8998);
  EXPECT_NE(first["bootstrap_room"], json(decode.requests()[1].body)["bootstrap_room"]);
  EXPECT_EQ(prefill.connections(), 1U) << "its answer is read, so its connection can be kept";
  EXPECT_EQ(trail.prefill_worker, prefill.endpoint().to_string());
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(LegsTogether, APrefillThatFailsEndsTheDecodeAtOnce) {
  const FakeEngine prefill(test::always(response(400, R"({"message":"too long"})")));
  const FakeEngine decode(waits_to_be_dropped());
  serve_pair(prefill.endpoint(), decode.endpoint());
  ask(Api::Chat, kRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::EngineRejected);
  EXPECT_EQ(answer->error().message(), "too long");
  EXPECT_TRUE(decode.requests().empty() || decode.wait_for_drops(1));
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(LegsTogether, APrefillThatFailsLateEndsTheDecodeToo) {
  FakeEngine prefill([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of it");
    peer.wait_for_proceed();
  });
  const FakeEngine decode([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
    peer.wait_for_drop();
  });
  serve_pair(prefill.endpoint(), decode.endpoint());
  ask(Api::Chat, kRequest);
  ASSERT_TRUE(*answer);
  EXPECT_FALSE((*answer)->prefill_failure());
  run_until([&] { return prefill.pauses() == 1; });
  prefill.proceed();
  EXPECT_THAT(read_rest(), StartsWith("failed: "));
  ASSERT_TRUE((*answer)->prefill_failure());
  EXPECT_EQ((*answer)->prefill_failure()->code(), Errc::StreamBroken);
}

TEST_F(LegsTogether, APrefillThatFailsInsideItsStreamEndsTheDecodeToo) {
  const FakeEngine prefill([](FakePeer& peer) {
    peer.read_request();
    peer.write(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        "data: {\"error\":{\"message\":\"out of blocks\"}}\n\ndata: [DONE]\n\n");
  });
  const FakeEngine decode(waits_to_be_dropped());
  serve_pair(prefill.endpoint(), decode.endpoint());
  ask(Api::Chat, kRequest);
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
        peer.write(response(200, "fine"));
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
  ask(Api::Chat, kRequest);
  ASSERT_TRUE(*answer);
  EXPECT_EQ(read_rest(), "decoded");
  (*answer)->prefill_delivered();
  answer.reset();
  run_until([&] { return tasks.running() == 0; });

  begin(Api::Chat, kRequest);
  run_until([&] { return decode.requests().size() == 2 && prefill.pauses() == 1; });
  prefill.proceed();
  wait_for_answer();
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::EngineFailed);
  EXPECT_THAT(answer->error().message(), HasSubstr("failed"));
  EXPECT_EQ(decode.connections(), 1U);
}

TEST_F(LegsTogether, ADecodeThatFailsEndsThePrefillAtOnce) {
  FakeEngine decode([](FakePeer& peer) {
    peer.read_request();
    peer.wait_for_proceed();
    peer.write(response(503, R"({"message":"full"})"));
  });
  const FakeEngine prefill(waits_to_be_dropped());
  serve_pair(prefill.endpoint(), decode.endpoint());
  begin(Api::Chat, kRequest);
  run_until([&] { return prefill.requests().size() == 1 && decode.requests().size() == 1; });
  decode.proceed();
  wait_for_answer();
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::EngineOverloaded);
  run_until([&] { return tasks.running() == 0; });
  EXPECT_TRUE(prefill.wait_for_drops(1));
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(LegsTogether, AnAnswerLetGoBeforeItBeganEndsThePrefill) {
  const FakeEngine prefill(waits_to_be_dropped());
  const FakeEngine decode([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
    peer.wait_for_drop();
  });
  serve_pair(prefill.endpoint(), decode.endpoint());
  ask(Api::Chat, kRequest);
  ASSERT_TRUE(*answer);
  run_until([&] { return prefill.requests().size() == 1; });
  answer.reset();
  run_until([&] { return tasks.running() == 0; });
  EXPECT_TRUE(prefill.wait_for_drops(1));
  EXPECT_TRUE(decode.wait_for_drops(1));
}

TEST_F(LegsTogether, WhatHappensToThePrefillNoLongerMattersOnceItHasDelivered) {
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
  ask(Api::Chat, kRequest);
  ASSERT_TRUE(*answer);
  (*answer)->prefill_delivered();
  run_until([&] { return prefill.requests().size() == 1; });
  prefill.proceed();
  run_until([&] { return tasks.running() == 0; });
  decode.proceed();
  EXPECT_EQ(read_rest(), "first-last");
}

TEST_F(LegsTogether, GoOnToTheNextWorkerWhereOneCannotBeReached) {
  const FakeEngine prefill(test::always(response(200, "fine")));
  const FakeEngine decode(test::always(response(200, "decoded")));
  serve(Engine::Sglang, {{Role::Prefill, test::closed_endpoint()},
                         {Role::Prefill, prefill.endpoint()},
                         {Role::Decode, test::closed_endpoint()},
                         {Role::Decode, decode.endpoint()}});
  ask(Api::Chat, kRequest);
  ASSERT_TRUE(*answer) << answer->error().message();
  EXPECT_EQ(read_rest(), "decoded");
  EXPECT_EQ(trail.prefill_worker, prefill.endpoint().to_string());
  EXPECT_EQ(trail.decode_worker, decode.endpoint().to_string());
}

TEST_F(LegsTogether, FailWhereNobodyCanBeReached) {
  const FakeEngine decode(waits_to_be_dropped());
  serve_pair(test::closed_endpoint(), decode.endpoint());
  ask(Api::Chat, kRequest);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::EngineUnreachable);
}

TEST_F(LegsTogether, AreCompletedForAClientThatLeftAndThenEnded) {
  const FakeEngine prefill(test::always(response(200, "fine")));
  FakeEngine decode([](FakePeer& peer) {
    peer.read_request();
    peer.wait_for_proceed();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfirst");
    peer.wait_for_drop();
  });
  serve_pair(prefill.endpoint(), decode.endpoint());
  begin(Api::Chat, kRequest);
  run_until([&] { return decode.requests().size() == 1; });
  cancellation.request(client_gone());
  run_for(20ms);
  EXPECT_FALSE(answer) << "the transfer is completed first";
  decode.proceed();
  wait_for_answer();
  ASSERT_TRUE(*answer);
  EXPECT_THAT(read_rest(), StartsWith("failed: the client left"));
  answer.reset();
  EXPECT_TRUE(decode.wait_for_drops(1));
}

}  // namespace
}  // namespace baton::handoff
