// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/relay.h"

#include "unit/handoff/handoff_fixture.h"
#include "unit/pipeline/recording_sink.h"
#include "unit/scheduling/known_prompt_stub.h"

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

struct RelayTest : handoff::HandoffFixture {
  // Sends a request to the one who does both, and relays its answer.
  void relay_from(const model::Endpoint& one, bool stream = true) {
    config.models.clear();
    serve(Engine::Vllm, {{Role::Aggregated, one}});
    begin_relay(stream);
  }
  // The same with whoever is served by.
  void begin_relay(bool stream, bool continuable = false) {
    result.reset();
    sink.emplace(io);
    record = {};
    record.id = "id-1";
    record.stream = stream;
    start([this, continuable]() -> awaitable<void> {
      handoff::HandoffRequest wanted = job(engine::Api::Completions, request);
      wanted.continuable = continuable;
      wanted.observer = observer;
      Delivery delivery{.api = engine::Api::Completions,
                        .include_usage = engine::IncludeUsage::No,
                        .response_bytes = response_bytes,
                        .tell_workers = tell_workers,
                        .cpu = cpu,
                        .continuity = {}};
      if (continuable) {
        const engine::ClientCall call{.api = wanted.api, .body = wanted.body->object()};
        delivery.continuity = std::make_unique<engine::StreamContinuity>(call);
      }
      auto got = co_await handoff->run(std::move(wanted), record.trace, cancellation);
      if (got) {
        result = co_await relay(*got, std::move(delivery), *sink, record, model_metrics);
      } else {
        result = fail(got.error());
      }
    });
  }
  void wait() {
    run_until([this] { return result.has_value(); });
  }
  // Relays a stream that ends after these bytes of it.
  void relay_events(const std::string& events, bool cut = false) {
    const FakeEngine one([&](FakePeer& peer) {
      peer.read_request();
      peer.write(kHead + (events.empty() ? "" : chunk(events)) + (cut ? "" : "0\r\n\r\n"));
    });
    relay_from(one.endpoint());
    wait();
  }
  Errc failure() const { return result->error().code(); }

  std::string request = R"({"model":"m","prompt":"p","max_tokens":9,"stream":true})";
  std::size_t response_bytes = 1000;
  bool tell_workers = false;
  std::shared_ptr<scheduling::PromptObserver> observer;
  ModelMetrics model_metrics{metrics, "m"};
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
  EXPECT_FALSE(sink->headers.find("x-bypass-remote-prefill"));
  EXPECT_EQ(record.status, 200);
  EXPECT_EQ(record.events, 3U);
  EXPECT_EQ(record.response_bytes, events.size());
  ASSERT_TRUE(record.usage);
  EXPECT_EQ(record.usage->completion_tokens, 2);
}

TEST_F(RelayTest, SaysThatTheDecodeWorkerComputedThePromptItself) {
  FakeEngine decode([](FakePeer& peer) {
    while (peer.read_request()) peer.write(kHead + chunk(kToken + kFinish + kDone) + "0\r\n\r\n");
  });
  FakeEngine prefill(test::always(test::response(200, "{}")));
  options.policy = model::Policy::Kv;
  options.routing.conditional.policy = config::Bypass::IslBounding;
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, decode.endpoint()}});
  const auto prompt = std::make_shared<scheduling::KnownPromptStub>(1600);
  prompt->cached(worker(decode.endpoint()), 1584);
  observer = prompt;
  begin_relay(true);
  wait();
  ASSERT_TRUE(*result) << result->error().message();
  EXPECT_EQ(sink->headers.find("x-bypass-remote-prefill"), "true");
  EXPECT_EQ(prefill.requests().size(), 0U);
}

TEST_F(RelayTest, GivesTheSameWhereverTheBytesAreCut) {
  const std::string events = kToken + kFinish + kUsage + kDone;
  std::atomic<std::size_t> cut = 1;  // read by the worker's threads
  FakeEngine one([&](FakePeer& peer) {
    while (peer.read_request()) {
      peer.write(kHead + chunk(events.substr(0, cut)));
      peer.wait_for_proceed();
      peer.write(chunk(events.substr(cut)) + "0\r\n\r\n");
    }
  });
  serve(Engine::Vllm, {{Role::Aggregated, one.endpoint()}});
  for (; cut < events.size(); ++cut) {
    begin_relay(true);
    run_until([&] { return one.pauses() == cut; });
    // What was written is here; everything that can be done with it is done before the rest comes.
    while (io.poll() > 0) {
    }
    const std::string so_far = events.substr(0, cut);
    const std::size_t whole_events = so_far.rfind("\n\n");
    EXPECT_EQ(sink->body,
              whole_events == std::string::npos ? "" : so_far.substr(0, whole_events + 2))
        << "an event goes on as soon as it is whole; cut at " << cut;
    one.proceed();
    wait();
    ASSERT_TRUE(*result) << "cut at " << cut << ": " << result->error().message();
    ASSERT_EQ(sink->body, events) << "cut at " << cut;
    ASSERT_EQ(record.events, 2U) << "cut at " << cut;
  }
  EXPECT_EQ(one.connections(), 1U) << "a stream read to its end leaves its connection usable";
}

TEST_F(RelayTest, GivesTheSameHoweverMuchTheClientTakesAtOnce) {
  const std::string error = "data: {\"error\":{\"message\":\"no\",\"code\":500}}\n\n";
  for (const std::string& events :
       {kToken + kFinish + kUsage + kDone, kToken + kToken + error + kDone, kToken + kToken}) {
    const FakeEngine one([&](FakePeer& peer) {
      while (peer.read_request()) peer.write(kHead + chunk(events) + "0\r\n\r\n");
    });
    config.models.clear();
    serve(Engine::Vllm, {{Role::Aggregated, one.endpoint()}});
    begin_relay(true);
    wait();
    const std::string body = sink->body;
    const bool good = result->has_value();
    EXPECT_THAT(body, StartsWith(kToken));
    for (std::size_t at_once = 0; at_once < body.size(); ++at_once) {
      begin_relay(true);
      sink->at_once = at_once;
      wait();
      ASSERT_EQ(sink->body, body) << at_once;
      ASSERT_EQ(result->has_value(), good) << at_once;
    }
  }
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
  FakeEngine one([&](FakePeer& peer) {
    peer.read_request();
    peer.write(kHead);
    std::string many;
    for (int i = 0; i < 1000; ++i) many += kToken;
    for (int i = 0; i < events / 1000; ++i) peer.write(chunk(many));
    all_written = true;
    peer.write(chunk(kFinish + kDone) + "0\r\n\r\n");
  });
  relay_from(one.endpoint());
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

TEST_F(RelayTest, GivesNoTimeForEventsWithoutAToken) {
  const std::string role =
      "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
  const std::string empty = "data: {\"choices\":[{\"delta\":{}}]}\n\n";
  timeouts = {.first_byte = 300ms, .idle = 200ms};
  for (const std::string& first : {std::string(), kToken}) {
    for (const std::string& more :
         {std::string(": ping\n\n"), std::string("data:\n\n"), role, empty}) {
      const FakeEngine one([&](FakePeer& peer) {
        peer.read_request();
        peer.write(kHead + (first.empty() ? "" : chunk(first)));
        peer.drip(chunk(more));
      });
      relay_from(one.endpoint());
      wait();
      ASSERT_FALSE(*result) << first << more;
      EXPECT_EQ(failure(), Errc::EngineTimeout) << first << more;
      EXPECT_EQ(record.events, first.empty() ? 0U : 1U) << first << more;
    }
  }
}

TEST_F(RelayTest, WaitsForAStreamAsLongAsTokensCome) {
  timeouts = {.first_byte = 300ms, .idle = 300ms};
  FakeEngine one([&](FakePeer& peer) {
    peer.read_request();
    peer.write(kHead);
    peer.drip(chunk(kToken));
  });
  relay_from(one.endpoint());
  const auto begun = deadlines.lived();
  run_until([&] { return result || deadlines.lived() - begun > 900ms; });
  EXPECT_FALSE(result) << "still running";
  cancellation.request(handoff::client_gone());
  wait();
  EXPECT_EQ(failure(), Errc::ClientGone);
}

TEST_F(RelayTest, StopsWhereTheClientHasGone) {
  const FakeEngine one([](FakePeer& peer) {
    peer.read_request();
    peer.write(kHead + chunk(kToken));
    peer.wait_for_drop();
  });
  relay_from(one.endpoint());
  sink->gone = true;
  wait();
  ASSERT_FALSE(*result);
  EXPECT_EQ(failure(), Errc::ClientGone);
  EXPECT_TRUE(one.wait_for_drops(1));
}

TEST_F(RelayTest, GivesAWholeAnswerWithItsHeaders) {
  const std::string json =
      R"({"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}})";
  const FakeEngine one(
      test::always(test::response(200, json, "Content-Type: application/json\r\nServer: x\r\n")));
  relay_from(one.endpoint(), false);
  wait();
  ASSERT_TRUE(*result);
  EXPECT_EQ(sink->body, json);
  EXPECT_EQ(sink->headers.find("content-type"), "application/json");
  EXPECT_FALSE(sink->headers.find("content-length")) << "Baton writes its own";
  EXPECT_EQ(record.usage->completion_tokens, 2);
  EXPECT_EQ(record.events, 1U);
}

// Longer than what is gone through on the I/O thread.
std::string long_text() { return std::string(2 * net::CpuPool::kInPlace, 'x'); }

TEST_F(RelayTest, ALongWholeAnswerIsReadByTheCpuThreads) {
  const std::string json = R"({"choices":[{"text":")" + long_text() +
                           R"(","finish_reason":"stop"}],"usage":{"completion_tokens":2}})";
  const FakeEngine one(test::always(test::response(200, json)));
  response_bytes = 2 * json.size();
  hold_cpu();
  relay_from(one.endpoint(), false);
  wait_for_cpu_work();
  EXPECT_FALSE(result);
  release_cpu();
  wait();
  ASSERT_TRUE(*result) << result->error().message();
  EXPECT_EQ(sink->body, json);
  EXPECT_EQ(record.usage->completion_tokens, 2);
}

TEST_F(RelayTest, ALongEventIsJudgedByTheCpuThreads) {
  const std::string event =
      "data: {\"choices\":[{\"text\":\"" + long_text() + "\",\"finish_reason\":null}]}\n\n";
  const FakeEngine one(test::always(test::response(200, kToken + event + kFinish + kDone)));
  hold_cpu();
  relay_from(one.endpoint());
  wait_for_cpu_work();
  EXPECT_EQ(sink->body, kToken);
  release_cpu();
  wait();
  ASSERT_TRUE(*result) << result->error().message();
  EXPECT_EQ(sink->body, kToken + event + kFinish + kDone);
  EXPECT_EQ(record.events, 3U);
}

TEST_F(RelayTest, ShortEventsNeedNoCpuThread) {
  hold_cpu();
  relay_events(kToken + kFinish + kDone);
  EXPECT_TRUE(*result);
}

TEST_F(RelayTest, AShortWholeAnswerNeedsNoCpuThread) {
  const FakeEngine one(
      test::always(test::response(200, R"({"choices":[{"finish_reason":"stop"}]})")));
  hold_cpu();
  relay_from(one.endpoint(), false);
  wait();
  EXPECT_TRUE(*result);
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
    const FakeEngine one([&](FakePeer& peer) {
      peer.read_request();
      peer.write(c.answer);
    });
    relay_from(one.endpoint(), false);
    wait();
    ASSERT_FALSE(*result) << c.answer;
    EXPECT_EQ(failure(), c.code) << c.answer;
    EXPECT_EQ(sink->answers, 0) << c.answer;
    EXPECT_EQ(record.status, 0) << c.answer;
  }
}

TEST_F(RelayTest, TellsWhoServed) {
  const FakeEngine one(test::always(test::response(200, kToken + kFinish + kDone)));
  tell_workers = true;
  relay_from(one.endpoint());
  wait();
  ASSERT_TRUE(*result) << result->error().message();
  EXPECT_EQ(sink->headers.find("x-baton-request-id"), "id-1");
  EXPECT_EQ(sink->headers.find("x-baton-decode-worker"), one.endpoint().to_string());
  EXPECT_FALSE(sink->headers.find("x-baton-prefill-worker"));
}

// A stream that another worker begins anew, because nothing of it was seen.
TEST_F(RelayTest, RepeatsUnseenWhatFailsBeforeItsFirstEvent) {
  const struct {
    const char* what;
    std::string bytes;
  } cases[] = {
      {"nothing after the head", kHead},
      {"half an event", kHead + chunk(kToken.substr(0, 9))},
      {"a comment", kHead + chunk(": wait\n\n")},
      {"an error", kHead + chunk("data: {\"error\":{\"message\":\"no\"}}\n\n")},
      {"no JSON", kHead + chunk("data: {\n\n")},
  };
  for (const auto& c : cases) {
    const FakeEngine failing([&](FakePeer& peer) {
      peer.read_request();
      peer.write(c.bytes);
    });
    const FakeEngine other(test::always(kHead + chunk(kToken + kFinish + kDone) + "0\r\n\r\n"));
    config.models.clear();
    serve(Engine::Vllm,
          {{Role::Aggregated, failing.endpoint()}, {Role::Aggregated, other.endpoint()}});
    begin_relay(true);
    wait();
    ASSERT_TRUE(*result) << c.what << ": " << result->error().message();
    EXPECT_THAT(sink->body, testing::EndsWith(kToken + kFinish + kDone)) << c.what;
    EXPECT_THAT(sink->body, testing::Not(HasSubstr("error"))) << c.what;
    EXPECT_EQ(sink->answers, 1) << c.what;
    EXPECT_EQ(record.trace.decode.worker, other.endpoint().to_string()) << c.what;
    EXPECT_EQ(record.trace.retries, 1U) << c.what;
    EXPECT_EQ(record.events, 2U) << c.what;
  }
}

TEST_F(RelayTest, RepeatsAWholeAnswerThatIsNotSound) {
  const std::string good = R"({"choices":[{"finish_reason":"stop"}]})";
  const FakeEngine failing(
      test::always(test::response(200, R"({"choices":[{"finish_reason":"abort"}]})")));
  const FakeEngine other(test::always(test::response(200, good)));
  serve(Engine::Vllm,
        {{Role::Aggregated, failing.endpoint()}, {Role::Aggregated, other.endpoint()}});
  begin_relay(false);
  wait();
  ASSERT_TRUE(*result) << result->error().message();
  EXPECT_EQ(sink->body, good);
  EXPECT_EQ(record.trace.retries, 1U);
}

// Workers that produce the tokens 7 to 11 as a, b, c, d, e, one event each.
std::string token_event(int i, const std::string& id, bool first) {
  const std::string prompt = first ? R"("prompt_token_ids":[1,2,3],)" : "";
  const std::string finish = i == 4 ? "\"length\"" : "null";
  return fmt::format(
      R"(data: {{"id":"{}","created":5,"choices":[{{"index":0,{}"token_ids":[{}],"text":"{}","finish_reason":{}}}]}})"
      "\n\n",
      id, prompt, 7 + i, static_cast<char>('a' + i), finish);
}
std::string seen_event(int i) {
  const std::string finish = i == 4 ? "\"length\"" : "null";
  return fmt::format(
      R"(data: {{"id":"c-1","created":5,"choices":[{{"index":0,"text":"{}","finish_reason":{}}}]}})"
      "\n\n",
      static_cast<char>('a' + i), finish);
}
const std::string kAllSeen =
    seen_event(0) + seen_event(1) + seen_event(2) + seen_event(3) + seen_event(4) + kDone;

struct Migration : RelayTest {
  // The first dies after `produced` tokens and half an event; the second goes on from there.
  void relay_broken_after(int produced) {
    std::string first;
    std::string second;
    for (int i = 0; i < produced; ++i) first += token_event(i, "c-1", i == 0);
    first += token_event(produced, "c-1", produced == 0).substr(0, 11);
    for (int i = produced; i < 5; ++i) second += token_event(i, "c-2", i == produced);
    dying.emplace([first](FakePeer& peer) {
      peer.read_request();
      peer.write(kHead + chunk(first));
    });
    other.emplace(test::always(kHead + chunk(second + kDone) + "0\r\n\r\n"));
    config.models.clear();
    serve(Engine::Vllm,
          {{Role::Aggregated, dying->endpoint()}, {Role::Aggregated, other->endpoint()}});
    begin_relay(true, options.migration > 0);
    wait();
  }
  std::optional<FakeEngine> dying;
  std::optional<FakeEngine> other;
};

TEST_F(Migration, GoesOnExactlyWhereverTheFirstWorkerDied) {
  options.migration = 1;
  for (int produced = 1; produced < 5; ++produced) {
    relay_broken_after(produced);
    ASSERT_TRUE(*result) << produced << ": " << result->error().message();
    EXPECT_EQ(sink->body, kAllSeen) << produced;
    EXPECT_TRUE(sink->ended);
    EXPECT_EQ(sink->answers, 1);
    EXPECT_EQ(record.trace.migrations, 1U) << produced;
    const auto again = handoff::json(other->requests()[0].body);
    std::vector<int> prompt{1, 2, 3};
    for (int i = 0; i < produced; ++i) prompt.push_back(7 + i);
    EXPECT_EQ(again["prompt"], nlohmann::json(prompt)) << produced;
    EXPECT_EQ(again["max_tokens"], 9 - produced) << produced;
  }
  EXPECT_EQ(counters.migrations.value(), 4U);
}

TEST_F(Migration, IsNoneBeforeTheFirstTokenWhereTheRequestIsRepeated) {
  options.migration = 1;
  relay_broken_after(0);
  ASSERT_TRUE(*result) << result->error().message();
  EXPECT_EQ(record.trace.migrations, 0U);
  EXPECT_EQ(record.trace.retries, 1U);
  EXPECT_EQ(handoff::json(other->requests()[0].body)["prompt"], "p");
}

TEST_F(Migration, IsNoneWhereItIsNotSwitchedOn) {
  relay_broken_after(2);
  ASSERT_FALSE(*result);
  EXPECT_EQ(failure(), Errc::StreamBroken);
  EXPECT_EQ(sink->body, token_event(0, "c-1", true) + token_event(1, "c-1", false));
  EXPECT_EQ(record.status, 200) << "so the error is told inside the stream";
  EXPECT_TRUE(other->requests().empty());
}

TEST_F(Migration, IsNotNeededWhereOnlyTheEndIsMissing) {
  options.migration = 1;
  std::string all;
  for (int i = 0; i < 5; ++i) all += token_event(i, "c-1", i == 0);
  const FakeEngine cut([all](FakePeer& peer) {
    peer.read_request();
    peer.write(kHead + chunk(all));
  });
  serve(Engine::Vllm, {{Role::Aggregated, cut.endpoint()}});
  begin_relay(true, true);
  wait();
  ASSERT_TRUE(*result) << result->error().message();
  EXPECT_EQ(sink->body, kAllSeen);
  EXPECT_EQ(record.trace.migrations, 0U);
}

TEST_F(Migration, IsOverWhenItsNumberIsUsedUp) {
  options.migration = 1;
  const std::string first = token_event(0, "c-1", true);
  const std::string second = token_event(1, "c-2", true);
  const auto dies_after = [](std::string events) {
    return [events](FakePeer& peer) {
      peer.read_request();
      peer.write(kHead + chunk(events));
    };
  };
  const FakeEngine one(dies_after(first));
  const FakeEngine two(dies_after(second));
  const FakeEngine three(test::always(kHead + chunk(kToken + kFinish + kDone) + "0\r\n\r\n"));
  serve(Engine::Vllm, {{Role::Aggregated, one.endpoint()},
                       {Role::Aggregated, two.endpoint()},
                       {Role::Aggregated, three.endpoint()}});
  begin_relay(true, true);
  wait();
  ASSERT_FALSE(*result);
  EXPECT_EQ(failure(), Errc::StreamBroken);
  EXPECT_EQ(sink->body, seen_event(0) + seen_event(1));
  EXPECT_TRUE(three.requests().empty());
}

// Two workers: usage is merged from both, prompt tokens once, cached ones as prefill says.
struct MergedUsage : RelayTest {
  static std::string usage(int prompt, int completion, int cached) {
    return fmt::format(
        R"("usage":{{"prompt_tokens":{},"total_tokens":{},"completion_tokens":{},"prompt_tokens_details":{{"cached_tokens":{}}}}})",
        prompt, prompt + completion, completion, cached);
  }
  void serve_two(Engine engine, const std::string& decoded) {
    decode.emplace(test::always(test::response(200, decoded)));
    serve(engine, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, decode->endpoint()}});
  }
  FakeEngine prefill{test::always(test::response(
      200, R"({"choices":[{"finish_reason":"length"}],"kv_transfer_params":{"a":1},)" +
               usage(10, 1, 4) + "}"))};
  std::optional<FakeEngine> decode;
};

TEST_F(MergedUsage, IsRightInAStreamOfEitherOrder) {
  for (const Engine engine : {Engine::Vllm, Engine::Sglang}) {
    config.models.clear();
    serve_two(engine,
              kToken + kFinish + "data: {\"choices\":[]," + usage(10, 3, 10) + "}\n\n" + kDone);
    begin_relay(true);
    wait();
    ASSERT_TRUE(*result) << result->error().message();
    EXPECT_EQ(sink->body,
              kToken + kFinish + "data: {\"choices\":[]," + usage(10, 3, 4) + "}\n\n" + kDone);
    ASSERT_TRUE(record.usage);
    EXPECT_EQ(record.usage->cached_tokens, 4);
    EXPECT_EQ(record.usage->completion_tokens, 3);
  }
}

TEST_F(MergedUsage, IsRightInAWholeAnswer) {
  serve_two(Engine::Vllm, R"({"choices":[{"finish_reason":"stop"}],)" + usage(10, 3, 10) + "}");
  begin_relay(false);
  wait();
  ASSERT_TRUE(*result) << result->error().message();
  EXPECT_EQ(sink->body, R"({"choices":[{"finish_reason":"stop"}],)" + usage(10, 3, 4) + "}");
  EXPECT_EQ(record.usage->cached_tokens, 4);
}

TEST_F(MergedUsage, IsRightInLongAnswersAndEvents) {
  const std::string text = long_text();
  const auto answer = [&](int cached) {
    return R"({"choices":[{"text":")" + text + R"(","finish_reason":"stop"}],)" +
           usage(10, 3, cached) + "}";
  };
  response_bytes = 2 * answer(10).size();
  serve_two(Engine::Vllm, answer(10));
  begin_relay(false);
  wait();
  ASSERT_TRUE(*result) << result->error().message();
  EXPECT_EQ(sink->body, answer(4));

  config.models.clear();
  serve_two(Engine::Vllm, kToken + "data: " + answer(10) + "\n\n" + kDone);
  begin_relay(true);
  wait();
  ASSERT_TRUE(*result) << result->error().message();
  EXPECT_EQ(sink->body, kToken + "data: " + answer(4) + "\n\n" + kDone);
}

TEST_F(MergedUsage, WaitsAShortWhileForAPrefillThatAnswersLast) {
  FakeEngine slow(handoff::answers_when_told(
      test::response(200, R"({"choices":[{"finish_reason":"length"}],)" + usage(10, 1, 4) + "}")));
  decode.emplace(test::always(test::response(
      200, kToken + kFinish + "data: {\"choices\":[]," + usage(10, 3, 10) + "}\n\n" + kDone)));
  serve(Engine::Sglang, {{Role::Prefill, slow.endpoint()}, {Role::Decode, decode->endpoint()}});
  begin_relay(true);
  run_until([&] { return slow.pauses() == 1 && sink->writes > 0; });
  EXPECT_FALSE(result);
  slow.proceed();
  wait();
  ASSERT_TRUE(*result) << result->error().message();
  EXPECT_EQ(record.usage->cached_tokens, 4);
}

}  // namespace
}  // namespace baton::pipeline
