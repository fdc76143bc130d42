// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/fan_out.h"

#include "unit/handoff/handoff_fixture.h"
#include "unit/pipeline/recording_sink.h"
#include "wire/sse_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace baton::pipeline {
namespace {

using engine::Api;
using handoff::json;
using test::FakeEngine;
using test::FakePeer;
using test::response;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kKept =
    R"({"choices":[{"finish_reason":"length"}],"kv_transfer_params":{"a":1},)"
    R"("usage":{"prompt_tokens":9,"completion_tokens":1,)"
    R"("prompt_tokens_details":{"cached_tokens":4}}})";

std::string id_of(const test::SeenRequest& request) {
  const std::size_t at = request.head.find("X-Request-Id: ") + 14;
  return request.head.substr(at, request.head.find("\r\n", at) - at);
}

// A stream of two tokens whose text names the request it is for.
std::string events_of(const std::string& id) {
  const std::string begin = "data: {\"id\":\"cmpl-" + id + "\",\"choices\":[";
  const std::string token = "{\"index\":0,\"text\":\"" + id + " \",\"finish_reason\":";
  return begin + token + "null}]}\n\n" + begin + token + "\"stop\"}]}\n\n" + begin +
         "],\"usage\":{\"prompt_tokens\":9,\"total_tokens\":11,\"completion_tokens\":2,"
         "\"prompt_tokens_details\":{\"cached_tokens\":9}}}\n\ndata: [DONE]\n\n";
}

FakeEngine::Script streams() {
  return [](FakePeer& peer) {
    while (const auto request = peer.read_request())
      peer.write(response(200, events_of(id_of(*request)), "Content-Type: text/event-stream\r\n"));
  };
}

struct FanOutTest : handoff::HandoffFixture {
  kvcache::KvCacheView caches{config::KvIndex(), metrics, log};
  void serve_with(const FakeEngine& decode) {
    serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, decode.endpoint()}});
  }
  void begin_request(const std::string& body) {
    ended = false;
    record.stream = body.find("\"stream\":true") != std::string::npos;
    handoff::HandoffRequest wanted = job(Api::Completions, body);
    auto branches = engine::branches_of(Api::Completions, wanted.body->object()).value();
    const std::int64_t n = wanted.body->object().find_integer("n").value_or(1);
    start([this, wanted, branches, n]() -> awaitable<void> {
      Delivery delivery{.api = Api::Completions,
                        .include_usage = engine::IncludeUsage::Yes,
                        .response_bytes = 1024 * 1024,
                        .tell_workers = false,
                        .cpu = cpu,
                        .continuity = {}};
      FanOut fan_out{*handoff, tasks,  wanted, branches, static_cast<std::size_t>(n),
                     caches,   tokens, &memory};
      result = co_await serve_branches(std::move(fan_out), std::move(delivery), sink, record,
                                       model_metrics, cancellation);
      ended = true;
    });
  }
  void request(const std::string& body) {
    begin_request(body);
    run_until([this] { return ended; });
  }
  // The events that reached the client, but for [DONE].
  std::vector<nlohmann::json> events() const {
    std::vector<nlohmann::json> all;
    wire::SseReader reader;
    reader.feed(sink.body);
    while (const auto event = reader.next()) {
      if (event->data != "[DONE]") all.push_back(json(std::string(event->data)));
    }
    return all;
  }
  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
    return found;
  }

  FakeEngine prefill{test::always(response(200, kKept))};
  ModelMetrics model_metrics{metrics, "m"};
  RequestRecord record;
  RecordingSink sink{io};
  PromptTokens tokens;
  std::optional<Result<void>> result;
  bool ended = false;
};

constexpr const char* kThree = R"({"model":"m","prompt":"p","n":3,"stream":true})";

TEST_F(FanOutTest, MakesOneStreamOfThree) {
  const FakeEngine decode(streams());
  serve_with(decode);
  request(kThree);
  ASSERT_TRUE(*result) << result->error().message();
  EXPECT_TRUE(sink.ended);
  EXPECT_EQ(sink.answers, 1);
  std::map<int, std::string> texts;
  std::set<std::string> ids;
  int usages = 0;
  for (const auto& event : events()) {
    ids.insert(event["id"]);
    if (event.contains("usage") && !event["usage"].is_null()) {
      ++usages;
      EXPECT_EQ(event["usage"]["prompt_tokens"], 9) << "one prompt";
      EXPECT_EQ(event["usage"]["completion_tokens"], 6);
      EXPECT_EQ(event["usage"]["prompt_tokens_details"]["cached_tokens"], 4);
    }
    for (const auto& choice : event["choices"]) texts[choice["index"]] += choice["text"];
  }
  EXPECT_EQ(texts, (std::map<int, std::string>{
                       {0, "id-1-0 id-1-0 "}, {1, "id-1-1 id-1-1 "}, {2, "id-1-2 id-1-2 "}}));
  EXPECT_EQ(ids.size(), 1U);
  EXPECT_EQ(usages, 1);
  EXPECT_EQ(count(sink.body, "[DONE]"), 1U);
  EXPECT_THAT(sink.body, EndsWith("data: [DONE]\n\n"));
  EXPECT_EQ(record.usage->completion_tokens, 6);
  EXPECT_EQ(record.events, 6U);
  EXPECT_EQ(record.status, 200);
  wait_for_legs();
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(FanOutTest, AsksForOneChoiceAtATime) {
  const FakeEngine decode(streams());
  serve_with(decode);
  request(R"({"model":"m","prompt":"p","n":3,"seed":7,"stream":true})");
  ASSERT_TRUE(*result);
  ASSERT_EQ(prefill.requests().size(), 3U);
  ASSERT_EQ(decode.requests().size(), 3U);
  std::set<int> seeds;
  for (const auto& one : decode.requests()) {
    const auto body = json(one.body);
    if (body.contains("n")) EXPECT_EQ(body["n"], 1);
    seeds.insert(body["seed"].get<int>());
  }
  EXPECT_EQ(seeds, (std::set<int>{7, 8, 9})) << "the same seed would give the same answer thrice";
}

TEST_F(FanOutTest, ServesAListOfPromptsOneByOne) {
  const FakeEngine decode(streams());
  serve_with(decode);
  request(R"({"model":"m","prompt":["one","two"],"stream":true})");
  ASSERT_TRUE(*result) << result->error().message();
  std::set<std::string> prompts;
  for (const auto& one : prefill.requests()) prompts.insert(json(one.body)["prompt"]);
  EXPECT_EQ(prompts, (std::set<std::string>{"one", "two"}));
  EXPECT_EQ(record.usage->prompt_tokens, 18) << "two prompts";
}

TEST_F(FanOutTest, MergesWholeAnswers) {
  const FakeEngine decode([](FakePeer& peer) {
    while (const auto request = peer.read_request()) {
      const std::string id = id_of(*request);
      peer.write(response(
          200, R"({"id":"c","choices":[{"index":0,"text":")" + id +
                   R"(","finish_reason":"stop"}],"usage":{"prompt_tokens":9,"total_tokens":11,)"
                   R"("completion_tokens":2}})"));
    }
  });
  serve_with(decode);
  request(R"({"model":"m","prompt":"p","n":3})");
  ASSERT_TRUE(*result) << result->error().message();
  EXPECT_EQ(sink.answers, 1);
  const auto body = json(sink.body);
  ASSERT_EQ(body["choices"].size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(body["choices"][i]["index"], i);
    EXPECT_EQ(body["choices"][i]["text"], "id-1-" + std::to_string(i));
  }
  EXPECT_EQ(body["usage"]["prompt_tokens"], 9);
  EXPECT_EQ(body["usage"]["completion_tokens"], 6);
  EXPECT_EQ(record.usage->completion_tokens, 6);
}

TEST_F(FanOutTest, WholeAnswersNeedRoomInMemoryTogether) {
  const std::string filler(150'000, 'x');
  const FakeEngine decode(test::always(response(
      200, R"({"choices":[{"index":0,"text":")" + filler + R"(","finish_reason":"stop"}]})")));
  serve_with(decode);
  MemoryShare others(&memory);
  // One after the other could be read.
  ASSERT_TRUE(others.cover(memory.limit() - 1'100'000));
  request(R"({"model":"m","prompt":"p","n":3})");
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error().code(), Errc::MemoryExhausted);
  wait_for_legs();
  EXPECT_EQ(memory.used(), others.held());
}

TEST_F(FanOutTest, LongAnswersAreMergedByTheCpuThreads) {
  const std::string text(2 * net::CpuPool::kInPlace, 'x');
  const std::string choice =
      R"("choices":[{"index":0,"text":")" + text + R"(","finish_reason":"stop"}]})";
  for (const bool stream : {false, true}) {
    const FakeEngine decode(
        test::always(stream ? response(200, R"(data: {"id":"a",)" + choice + "\n\ndata: [DONE]\n\n")
                            : response(200, R"({"id":"a",)" + choice)));
    config.models.clear();
    sink.body.clear();
    serve_with(decode);
    hold_cpu();
    begin_request(fmt::format(R"({{"model":"m","prompt":"p","n":2,"stream":{}}})", stream));
    run_until([this] { return cpu.waiting() == 2; });
    EXPECT_FALSE(ended);
    release_cpu();
    run_until([this] { return ended; });
    ASSERT_TRUE(*result) << result->error().message();
    EXPECT_EQ(count(sink.body, text), 2U);
    EXPECT_EQ(count(sink.body, "\"index\":1"), 1U);
  }
}

TEST_F(FanOutTest, ABranchThatIsRefusedEndsAllWithThatErrorAtOnce) {
  grace = std::chrono::hours(1);  // the others are not cut while they fetch, but nobody waits
  FakeEngine decode([](FakePeer& peer) {
    const auto request = peer.read_request();
    if (!request) return;
    if (id_of(*request) == "id-1-1") {
      peer.wait_for_proceed();
      peer.write(response(400, R"({"message":"bad choice"})"));
    }
    peer.wait_for_drop();
  });
  serve_with(decode);
  begin_request(kThree);
  run_until([&] { return decode.requests().size() == 3 && decode.pauses() == 1; });
  decode.proceed();
  run_until([this] { return ended; });
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error().message(), "bad choice");
  EXPECT_EQ(record.status, 0) << "so it is told by its status";
  EXPECT_EQ(sink.answers, 0);
}

// A prefill that runs on, or is dropped, has left no blocks: no event is due of it.
TEST_F(FanOutTest, ABranchThatStillRunsWhenAnotherFailsIsNotTakenForComputed) {
  grace = std::chrono::hours(1);
  FakeEngine slow([](FakePeer& peer) {
    const auto request = peer.read_request();
    if (!request) return;
    if (id_of(*request).starts_with("id-1-1")) {
      peer.wait_for_proceed();
      peer.write(response(400, R"({"message":"bad choice"})"));
    }
    peer.wait_for_drop();
  });
  const FakeEngine decode(streams());
  serve(Engine::Vllm, {{Role::Prefill, slow.endpoint()}, {Role::Decode, decode.endpoint()}});
  const kvcache::Holder holder{worker(slow.endpoint()).id(), 0};
  const kvcache::BlockShape shape{.size = 2};
  kvcache::KvCacheView::Table table;
  const auto cache = std::make_shared<kvcache::Cache>(
      kvcache::Cache::Identity{.holder = holder, .worker = "w", .authority = "a", .model = "m"},
      caches.index().join(holder), shape);
  cache->set_health(kvcache::FeedHealth::Live);
  table.caches[holder] = cache;
  table.plans["m"].shapes = {shape};
  caches.publish(std::move(table));
  const std::vector<kvcache::TokenId> prompt{1, 2, 3, 4, 5};
  tokens.blocks = {std::make_shared<const kvcache::PromptBlocks>(
      kvcache::hash_prompt(caches.plan("m"), prompt, ""))};
  begin_request(kThree);
  run_until([&] { return slow.requests().size() == 3 && slow.pauses() == 1; });
  slow.proceed();
  run_until([this] { return ended; });
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error().message(), "bad choice");
  EXPECT_THAT(caches.take_expecting(), testing::IsEmpty());
}

TEST_F(FanOutTest, ABranchThatBreaksMidStreamEndsAllWithOneError) {
  FakeEngine decode([](FakePeer& peer) {
    const auto request = peer.read_request();
    if (!request) return;
    const std::string id = id_of(*request);
    const std::string events = events_of(id);
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" +
               events.substr(0, events.find("\n\n") + 2));
    if (id == "id-1-1") {
      peer.wait_for_proceed();
    } else {
      peer.wait_for_drop();
    }
  });
  serve_with(decode);
  begin_request(kThree);
  run_until([&] { return events().size() == 3; });
  decode.proceed();
  run_until([this] { return ended; });
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error().code(), Errc::StreamBroken);
  EXPECT_EQ(record.status, 200) << "so it is told inside the stream";
  EXPECT_THAT(sink.body, Not(HasSubstr("[DONE]")));
  EXPECT_FALSE(sink.ended);
  EXPECT_TRUE(decode.wait_for_drops(2)) << "the others are told to stop";
  wait_for_legs();
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(FanOutTest, TellsOfTheBranchThatFailed) {
  FakeEngine decode([](FakePeer& peer) {
    const auto request = peer.read_request();
    if (!request) return;
    const std::string id = id_of(*request);
    if (id == "id-1-1") {
      const std::string events = events_of(id);
      peer.write("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" +
                 events.substr(0, events.find("\n\n") + 2));
      peer.wait_for_proceed();
    } else {
      peer.wait_for_drop();  // never says a word
    }
  });
  serve_with(decode);
  begin_request(kThree);
  run_until([&] { return decode.requests().size() == 3 && decode.pauses() == 1; });
  decode.proceed();
  run_until([this] { return ended; });
  ASSERT_FALSE(*result);
  EXPECT_TRUE(record.first_token) << "the client had one";
  EXPECT_TRUE(record.trace.decode.sent);
  wait_for_legs();
}

TEST_F(FanOutTest, ABranchThatFailsUnseenIsRepeatedAlone) {
  const FakeEngine failing([](FakePeer& peer) { peer.read_request(); });
  const FakeEngine decode(streams());
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()},
                       {Role::Decode, failing.endpoint()},
                       {Role::Decode, decode.endpoint()}});
  request(kThree);
  ASSERT_TRUE(*result) << result->error().message();
  EXPECT_EQ(record.usage->completion_tokens, 6);
  EXPECT_GE(failing.requests().size(), 1U);
}

TEST_F(FanOutTest, AClientThatLeavesEndsAll) {
  const FakeEngine decode([](FakePeer& peer) {
    const auto request = peer.read_request();
    if (!request) return;
    const std::string events = events_of(id_of(*request));
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" +
               events.substr(0, events.find("\n\n") + 2));
    peer.wait_for_drop();
  });
  serve_with(decode);
  begin_request(kThree);
  run_until([&] { return events().size() == 3; });
  cancellation.request(handoff::client_gone());
  run_until([this] { return ended; });
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error().code(), Errc::ClientGone);
  EXPECT_TRUE(decode.wait_for_drops(3));
  wait_for_legs();
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(FanOutTest, AClientThatTakesNothingMoreEndsAll) {
  const FakeEngine decode(streams());
  serve_with(decode);
  sink.gone = true;
  request(kThree);
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error().code(), Errc::ClientGone);
  wait_for_legs();
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(FanOutTest, NeverMixesTheBytesOfTwoEvents) {
  const FakeEngine decode(streams());
  serve_with(decode);
  begin_request(kThree);
  sink.be_slow();
  run_until([this] { return sink.writes == 1; });
  run_for(std::chrono::milliseconds(20));
  EXPECT_EQ(sink.writes, 1U) << "the others wait for their turn";
  sink.take();
  run_until([this] { return ended; });
  ASSERT_TRUE(*result) << result->error().message();
  EXPECT_EQ(events().size(), 7U);
}

}  // namespace
}  // namespace baton::pipeline
