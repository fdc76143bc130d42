// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/relay.h"

#include "support/fake_engine.h"
#include "support/io_fixture.h"
#include "unit/pipeline/recording_sink.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

namespace baton::pipeline {
namespace {

using namespace std::chrono_literals;
using test::FakeEngine;
using test::FakePeer;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nServer: uvicorn\r\n"
    "Transfer-Encoding: chunked\r\n\r\n";
const std::string kToken =
    "data: {\"choices\":[{\"delta\":{\"content\":\"☃\"},\"finish_reason\":null}]}\n\n";
const std::string kFinish = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const std::string kUsage =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n";
const std::string kDone = "data: [DONE]\n\n";

std::string chunk(std::string_view text) {
  return fmt::format("{:x}\r\n{}\r\n", text.size(), text);
}

struct RelayTest : test::IoFixture {
  // Sends a request to the worker and relays its answer.
  void relay(const model::Endpoint& worker, bool whole = false) {
    result.reset();
    sink.emplace(io);
    record = {};
    start([this, worker, whole]() -> awaitable<void> {
      handoff::Answer answer;
      answer.stream = std::make_unique<engine::Exchange>(
          pool, engine::Target{{1}, worker}, timeouts, nullptr, engine::OnCancel::Abort);
      const std::vector<std::string_view> no_body;
      const auto sent = co_await answer.stream->send("GET / HTTP/1.1\r\nHost: h\r\n\r\n", no_body);
      EXPECT_TRUE(sent);
      // In two steps: not every compiler gets the lifetimes of a conditional co_await right.
      if (whole) {
        result = co_await relay_whole(answer, 1000, *sink, record, metrics);
      } else {
        result = co_await relay_stream(answer, *sink, record, metrics);
      }
    });
  }
  void wait() {
    run_until([this] { return result.has_value(); });
  }
  // Relays a stream that ends after these bytes of it.
  void relay_events(const std::string& events, bool cut = false) {
    const FakeEngine worker([&](FakePeer& peer) {
      peer.read_request();
      peer.write(kHead + (events.empty() ? "" : chunk(events)) + (cut ? "" : "0\r\n\r\n"));
    });
    relay(worker.endpoint());
    wait();
  }
  Errc failure() const { return result->error().code(); }

  engine::ExchangeTimeouts timeouts{.first_byte = 5s, .idle = 5s, .handoff_grace = 5s};
  engine::UpstreamPool pool{
      io, deadlines, {.connect_timeout = 5s, .idle_per_worker = 4, .header_bytes = 16 * 1024}};
  telemetry::Registry registry;
  ModelMetrics metrics{registry, "m"};
  RequestRecord record;
  std::optional<RecordingSink> sink;
  std::optional<Result<void>> result;
};

TEST_F(RelayTest, PassesASoundStreamOnByteForByte) {
  const std::string events = ": hello\n\n" + kToken + kToken + kFinish + kUsage + kDone;
  relay_events(events);
  ASSERT_TRUE(*result) << result->error().message();
  EXPECT_EQ(sink->body, events);
  EXPECT_TRUE(sink->ended);
  EXPECT_EQ(sink->status, 200);
  EXPECT_EQ(sink->headers.find("content-type"), "text/event-stream");
  EXPECT_FALSE(sink->headers.find("server"));
  EXPECT_EQ(record.status, 200);
  EXPECT_EQ(record.events, 3U);
  EXPECT_EQ(record.response_bytes, events.size());
  ASSERT_TRUE(record.usage);
  EXPECT_EQ(record.usage->completion_tokens, 2);
}

TEST_F(RelayTest, GivesTheSameWhereverTheBytesAreCut) {
  const std::string events = kToken + kFinish + kUsage + kDone;
  std::atomic<std::size_t> cut = 1;  // read by the worker's threads
  FakeEngine worker([&](FakePeer& peer) {
    while (peer.read_request()) {
      peer.write(kHead + chunk(events.substr(0, cut)));
      peer.wait_for_proceed();
      peer.write(chunk(events.substr(cut)) + "0\r\n\r\n");
    }
  });
  for (; cut < events.size(); ++cut) {
    relay(worker.endpoint());
    run_until([&] { return worker.pauses() == cut; });
    // What was written is here; everything that can be done with it is done before the rest comes.
    while (io.poll() > 0) {
    }
    const std::string so_far = events.substr(0, cut);
    const std::size_t whole_events = so_far.rfind("\n\n");
    EXPECT_EQ(sink->body,
              whole_events == std::string::npos ? "" : so_far.substr(0, whole_events + 2))
        << "an event goes on as soon as it is whole; cut at " << cut;
    worker.proceed();
    wait();
    ASSERT_TRUE(*result) << "cut at " << cut << ": " << result->error().message();
    ASSERT_EQ(sink->body, events) << "cut at " << cut;
    ASSERT_EQ(record.events, 2U) << "cut at " << cut;
  }
  EXPECT_EQ(worker.connections(), 1U) << "a stream read to its end leaves its connection usable";
}

TEST_F(RelayTest, TakesEveryKindOfLineEnd) {
  for (const std::string end : {"\r\n", "\r"}) {
    std::string events = kToken + kFinish + kDone;
    for (std::size_t at = 0; (at = events.find('\n', at)) != std::string::npos; at += end.size()) {
      events.replace(at, 1, end);
    }
    relay_events(events);
    ASSERT_TRUE(*result) << result->error().message();
    EXPECT_EQ(sink->body, events);
  }
}

TEST_F(RelayTest, NeverTakesABrokenStreamForASuccess) {
  const std::string good = kToken;
  const std::string error_event = "data: {\"error\":{\"message\":\"KV load failed\"}}\n\n";
  const struct {
    const char* what;
    std::string events;
    bool cut;
    Errc code;
    std::string relayed;
  } cases[] = {
      {"no [DONE]", good + kFinish, false, Errc::StreamBroken, good + kFinish},
      {"nothing", "", false, Errc::StreamBroken, ""},
      {"[DONE] without finish_reason", good + kDone, false, Errc::EngineFailed, good},
      {"only [DONE]", kDone, false, Errc::EngineFailed, ""},
      {"an error event", good + error_event + kDone, false, Errc::EngineFailed, good},
      {"an error event at once", error_event + kDone, false, Errc::EngineFailed, ""},
      {"a choice given up",
       good + "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"abort\"}]}\n\n" + kDone, false,
       Errc::EngineFailed, good},
      {"no JSON", good + "data: {\"choices\":[\n\n" + kFinish + kDone, false, Errc::EngineProtocol,
       good},
      {"cut in an event", good + kFinish.substr(0, 20), true, Errc::StreamBroken, good},
      {"cut between events", good + kFinish, true, Errc::StreamBroken, good + kFinish},
      {"ended in an event", good + kFinish.substr(0, 20), false, Errc::StreamBroken, good},
  };
  for (const auto& c : cases) {
    relay_events(c.events, c.cut);
    ASSERT_FALSE(*result) << c.what;
    EXPECT_EQ(failure(), c.code) << c.what << ": " << result->error().message();
    EXPECT_EQ(sink->body, c.relayed) << c.what;
    EXPECT_FALSE(sink->ended) << c.what;
    EXPECT_EQ(record.status, c.relayed.empty() ? 0 : 200) << c.what;
  }
}

TEST_F(RelayTest, PassesTheEnginesWordsOn) {
  relay_events("data: {\"error\":{\"message\":\"KV load failed\"}}\n\n");
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error().message(), "KV load failed");
}

TEST_F(RelayTest, RefusesAnEventWithoutEnd) {
  std::string endless = "data: {\"choices\":[\"";
  endless.append(2 * 1024 * 1024, 'x');
  relay_events(endless);
  ASSERT_FALSE(*result);
  EXPECT_EQ(failure(), Errc::EngineProtocol);
}

TEST_F(RelayTest, ReadsNothingMoreWhileTheClientTakesNothing) {
  // Much more than the kernel holds between the worker and us.
  const int events = 400'000;
  std::atomic<bool> all_written = false;
  FakeEngine worker([&](FakePeer& peer) {
    peer.read_request();
    peer.write(kHead);
    std::string many;
    for (int i = 0; i < 1000; ++i) many += kToken;
    for (int i = 0; i < events / 1000; ++i) peer.write(chunk(many));
    all_written = true;
    peer.write(chunk(kFinish + kDone) + "0\r\n\r\n");
  });
  relay(worker.endpoint());
  sink->be_slow();
  run_until([&] { return sink->writes == 1; });
  run_for(100ms);
  EXPECT_EQ(sink->writes, 1U);
  EXPECT_FALSE(all_written);
  sink->take();
  wait();
  ASSERT_TRUE(*result) << result->error().message();
  EXPECT_TRUE(all_written);
  EXPECT_EQ(sink->body.size(), events * kToken.size() + kFinish.size() + kDone.size());
}

TEST_F(RelayTest, StopsWhereTheClientHasGone) {
  const FakeEngine worker([](FakePeer& peer) {
    peer.read_request();
    peer.write(kHead + chunk(kToken));
    peer.wait_for_drop();
  });
  relay(worker.endpoint());
  sink->gone = true;
  wait();
  ASSERT_FALSE(*result);
  EXPECT_EQ(failure(), Errc::ClientGone);
  EXPECT_TRUE(worker.wait_for_drops(1));
}

TEST_F(RelayTest, GivesAWholeAnswerWithItsHeaders) {
  const std::string json =
      R"({"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}})";
  const FakeEngine worker(
      test::always(test::response(200, json, "Content-Type: application/json\r\nServer: x\r\n")));
  relay(worker.endpoint(), true);
  wait();
  ASSERT_TRUE(*result);
  EXPECT_EQ(sink->body, json);
  EXPECT_EQ(sink->headers.find("content-type"), "application/json");
  EXPECT_FALSE(sink->headers.find("content-length")) << "Baton writes its own";
  EXPECT_EQ(record.usage->completion_tokens, 2);
  EXPECT_EQ(record.events, 1U);
}

TEST_F(RelayTest, NeverGivesAWholeAnswerThatIsCutOrNoJsonOrTooLarge) {
  const struct {
    std::string answer;
    Errc code;
  } cases[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{\"choices\":[]}", Errc::StreamBroken},
      {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"choices\":[", Errc::EngineProtocol},
      {test::response(200, ""), Errc::EngineProtocol},
      {test::response(200, R"({"choices":[]})"), Errc::EngineProtocol},
      {test::response(200, R"({"choices":[{"finish_reason":null}]})"), Errc::EngineProtocol},
      {test::response(200, R"({"choices":[{"finish_reason":"abort"}]})"), Errc::EngineFailed},
      {test::response(200, R"({"error":{"message":"no"},"choices":[{"finish_reason":"stop"}]})"),
       Errc::EngineFailed},
      {test::response(200, "{\"a\":\"" + std::string(1000, 'x') + "\"}"), Errc::EngineProtocol},
  };
  for (const auto& c : cases) {
    const FakeEngine worker([&](FakePeer& peer) {
      peer.read_request();
      peer.write(c.answer);
    });
    relay(worker.endpoint(), true);
    wait();
    ASSERT_FALSE(*result) << c.answer;
    EXPECT_EQ(failure(), c.code) << c.answer;
    EXPECT_EQ(sink->answers, 0) << c.answer;
    EXPECT_EQ(record.status, 0) << c.answer;
  }
}

}  // namespace
}  // namespace baton::pipeline
