// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/pipeline.h"

#include "unit/handoff/handoff_fixture.h"
#include "unit/pipeline/recording_sink.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::pipeline {
namespace {

using engine::Api;
using handoff::json;
using test::FakeEngine;
using test::FakePeer;
using test::response;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kEvents =
    "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

struct PipelineTest : handoff::HandoffFixture {
  void serve_one(const model::Endpoint& worker, ForwardAuthorization authorization) {
    serve(Engine::Vllm, {{Role::Aggregated, worker}});
    make_pipeline(authorization);
  }
  void make_pipeline(ForwardAuthorization authorization = ForwardAuthorization::No) {
    pipeline =
        std::make_unique<Pipeline>(*fleet, caches, prompts, *handoff, tasks, deadlines, ledger,
                                   Options{.forward_authorization = authorization,
                                           .response_bytes = 1024 * 1024,
                                           .handoff_fields = handoff_fields,
                                           .tell_workers = true,
                                           .overload_status = overload_status,
                                           .request_timeout = request_timeout,
                                           .memory = &memory});
  }
  void begin_request(Api api, std::string body) {
    ended = false;
    start([this, api, body]() -> awaitable<void> {
      wire::Headers headers = further;
      headers.add("Authorization", "Bearer k");
      auto incoming = std::make_unique<ClientRequest>(
          ClientRequest{.api = api,
                        .headers = std::move(headers),
                        .body = body,
                        .request_id = "id-1",
                        .received = std::chrono::steady_clock::now(),
                        .trusted = trusted,
                        .memory = MemoryShare(&memory)});
      co_await pipeline->serve(std::move(incoming), sink, cancellation);
      ended = true;
    });
  }
  void request(Api api, std::string body) {
    begin_request(api, std::move(body));
    run_until([this] { return ended; });
    EXPECT_LE(sink.answers, 1);
  }
  // The last line of the log.
  nlohmann::json request_line() const {
    const std::size_t before = lines.rfind('\n', lines.size() - 2);
    return json(before == std::string::npos ? lines : lines.substr(before + 1));
  }
  std::string code() const { return json(sink.body)["error"]["code"]; }
  testing::AssertionResult counted(const std::string& outcome, const std::string& model = "m") {
    const std::string line =
        "baton_requests_total{model=\"" + model + "\",outcome=\"" + outcome + "\"} 1\n";
    return metrics.render().find(line) != std::string::npos
               ? testing::AssertionSuccess()
               : testing::AssertionFailure() << "not counted as " << outcome;
  }

  wire::Headers further;
  scheduling::Trusted trusted = scheduling::Trusted::No;
  config::ClientHandoffFields handoff_fields = config::ClientHandoffFields::Strip;
  int overload_status = 0;
  std::chrono::milliseconds request_timeout{0};
  RequestLedger ledger{metrics, log, true};
  Tokenizers tokenizers{std::size_t{1} << 20, metrics};
  kvcache::KvCacheView caches{config::KvIndex(), metrics, log};
  PromptStep prompts{tokenizers, caches, cpu, EngineTokens(pool, cpu, 1024 * 1024)};
  std::unique_ptr<Pipeline> pipeline;
  RecordingSink sink{io};
  bool ended = false;
};

TEST_F(PipelineTest, AnswersWhole) {
  const FakeEngine one(
      test::always(response(200, R"({"choices":[{"index":0,"finish_reason":"stop"}]})")));
  serve_one(one.endpoint(), ForwardAuthorization::Yes);
  request(Api::Chat, R"({"model":"m","messages":[]})");
  EXPECT_EQ(sink.status, 200);
  EXPECT_EQ(sink.body, R"({"choices":[{"index":0,"finish_reason":"stop"}]})");
  EXPECT_TRUE(counted("ok"));
  EXPECT_THAT(one.requests()[0].head, HasSubstr("Authorization: Bearer k\r\n"));
  EXPECT_THAT(one.requests()[0].head, HasSubstr("X-Request-Id: id-1\r\n"));
  EXPECT_EQ(request_line()["outcome"], "ok");
}

TEST_F(PipelineTest, ABodyThatThereIsNoMemoryToReadIsRefused) {
  const FakeEngine one(
      test::always(response(200, R"({"choices":[{"index":0,"finish_reason":"stop"}]})")));
  serve_one(one.endpoint(), ForwardAuthorization::No);
  const std::string body =
      R"({"model":"m","messages":[],"x":")" + std::string(200'000, 'x') + "\"}";
  {
    MemoryShare others(&memory);
    ASSERT_TRUE(others.cover(memory.limit() - 900'000));
    request(Api::Chat, body);
    EXPECT_EQ(sink.status, 503);
    EXPECT_EQ(code(), "memory_exhausted");
    EXPECT_EQ(sink.headers.find("retry-after"), "1");
    EXPECT_EQ(request_line()["outcome"], "memory_exhausted");
    EXPECT_EQ(one.requests().size(), 0U);
    EXPECT_EQ(memory.used(), others.held());
  }
  sink.answers = sink.status = 0;
  request(Api::Chat, body);
  EXPECT_EQ(one.requests().size(), 1U);
  EXPECT_EQ(memory.used(), 0U);
}

TEST_F(PipelineTest, AWholeAnswerWithoutRoomIsRefusedAndAStreamGoesOn) {
  const std::string whole = R"({"choices":[{"index":0,"finish_reason":"stop"}],"x":")" +
                            std::string(200'000, 'x') + "\"}";
  const std::string events =
      "data: {\"choices\":[],\"x\":\"" + std::string(200'000, 'x') + "\"}\n\n" + kEvents;
  const FakeEngine one([&](FakePeer& peer) {
    while (const auto request = peer.read_request()) {
      peer.write(request->body.contains("stream")
                     ? response(200, events, "Content-Type: text/event-stream\r\n")
                     : response(200, whole));
    }
  });
  serve_one(one.endpoint(), ForwardAuthorization::No);
  const auto before = worker(one.endpoint()).condition();
  MemoryShare others(&memory);
  ASSERT_TRUE(others.cover(memory.limit()));
  request(Api::Chat, R"({"model":"m","messages":[]})");
  EXPECT_EQ(code(), "memory_exhausted");
  EXPECT_EQ(worker(one.endpoint()).condition(), before);
  EXPECT_THAT(lines, Not(HasSubstr("leg_failed")));
  sink.answers = sink.status = 0;
  sink.body.clear();
  request(Api::Completions, R"({"model":"m","prompt":"p","stream":true})");
  EXPECT_EQ(sink.body, events);
}

TEST_F(PipelineTest, ABodyHasItsMemoryUntilTheFirstToken) {
  FakeEngine one(
      handoff::answers_when_told(response(200, kEvents, "Content-Type: text/event-stream\r\n")));
  serve_one(one.endpoint(), ForwardAuthorization::No);
  sink.be_slow();
  begin_request(Api::Completions,
                R"({"model":"m","stream":true,"prompt":")" + std::string(200'000, 'x') + "\"}");
  run_until([&] { return one.requests().size() == 1; });
  EXPECT_GE(memory.used(), 200'000U);
  EXPECT_LT(memory.used(), 400'000U) << "what reading took is given back";
  one.proceed();
  run_until([&] { return sink.writes > 0; });
  EXPECT_EQ(memory.used(), 0U);
  sink.take();
  run_until([this] { return ended; });
}

TEST_F(PipelineTest, AnswersAsAStream) {
  const FakeEngine one(test::always(response(200, kEvents, "Content-Type: text/event-stream\r\n")));
  serve_one(one.endpoint(), ForwardAuthorization::No);
  request(Api::Completions, R"({"model":"m","prompt":"p","stream":true})");
  EXPECT_EQ(sink.body, kEvents);
  EXPECT_TRUE(sink.ended);
  EXPECT_TRUE(counted("ok"));
  EXPECT_THAT(one.requests()[0].head, Not(HasSubstr("Bearer")));
}

TEST_F(PipelineTest, RefusesWhatItCannotUnderstandWithoutAskingAnyone) {
  const struct {
    Api api;
    const char* body;
    int status;
    const char* code;
    const char* param;
  } cases[] = {
      {Api::Chat, "", 400, "invalid_json", nullptr},
      {Api::Chat, "[]", 400, "invalid_json", nullptr},
      {Api::Chat, "{}", 400, "invalid_request", "model"},
      {Api::Chat, R"({"model":""})", 400, "invalid_request", "model"},
      {Api::Chat, R"({"model":7})", 400, "invalid_request", "model"},
      {Api::Chat, R"({"model":"other","messages":[]})", 404, "model_not_found", "model"},
      {Api::Chat, R"({"model":"m","prompt":"p"})", 400, "invalid_request", "messages"},
      {Api::Completions, R"({"model":"m","messages":[]})", 400, "invalid_request", "prompt"},
      {Api::Chat, R"({"model":"m","messages":[],"stream":"yes"})", 400, "invalid_request",
       "stream"},
      {Api::Chat, R"({"model":"m","messages":[],"stream":1})", 400, "invalid_request", "stream"},
  };
  const FakeEngine one(test::always(response(200, "{}")));
  serve_one(one.endpoint(), ForwardAuthorization::No);
  for (const auto& c : cases) {
    sink.answers = 0;
    request(c.api, c.body);
    EXPECT_EQ(sink.status, c.status) << c.body;
    EXPECT_EQ(code(), c.code) << c.body;
    const auto param = json(sink.body)["error"]["param"];
    if (c.param) {
      EXPECT_EQ(param, c.param) << c.body;
    } else {
      EXPECT_TRUE(param.is_null()) << c.body;
    }
  }
  EXPECT_TRUE(one.requests().empty());
  EXPECT_TRUE(counted("model_not_found", "unknown"));
}

TEST_F(PipelineTest, RefusesLongTextsWhereEnginesTakeShortOnes) {
  const FakeEngine one(test::always(response(200, "{}")));
  serve_one(one.endpoint(), ForwardAuthorization::No);
  const std::string text(70'000, 'x');
  for (const char* field : {"cache_salt", "stream_options", "kv_transfer_params"}) {
    sink.answers = 0;
    request(Api::Chat,
            fmt::format(R"({{"model":"m","messages":[],"{}":{{"a":"{}"}}}})", field, text));
    EXPECT_EQ(sink.status, 400) << field;
    EXPECT_EQ(json(sink.body)["error"]["param"], field);
  }
  EXPECT_TRUE(one.requests().empty());
  EXPECT_THAT(metrics.render(), HasSubstr("baton_limit_refusals_total{limit=\"field_bytes\"} 3\n"));
}

TEST_F(PipelineTest, ServesALongBodyAsAShortOne) {
  const FakeEngine one(
      test::always(response(200, R"({"choices":[{"index":0,"finish_reason":"stop"}]})")));
  serve_one(one.endpoint(), ForwardAuthorization::No);
  const std::string body =
      fmt::format(R"({{"model":"m","messages":[{{"role":"user","content":"{}"}}],"nvext":{{}}}})",
                  std::string(3 * net::CpuPool::kInPlace, 'x'));
  request(Api::Chat, body);
  EXPECT_EQ(sink.status, 200);
  EXPECT_EQ(request_line()["outcome"], "ok");
  sink.answers = 0;
  request(Api::Chat, fmt::format(R"({{"model":"{}","messages":[]}})", std::string(100'000, 'y')));
  EXPECT_EQ(sink.status, 404);
  EXPECT_EQ(code(), "model_not_found");
  EXPECT_EQ(one.requests().size(), 1u);
}

TEST_F(PipelineTest, TakesANullStreamForNone) {
  const FakeEngine one(
      test::always(response(200, R"({"choices":[{"index":0,"finish_reason":"stop"}]})")));
  serve_one(one.endpoint(), ForwardAuthorization::No);
  request(Api::Chat, R"({"model":"m","messages":[],"stream":null})");
  EXPECT_EQ(sink.body, R"({"choices":[{"index":0,"finish_reason":"stop"}]})");
}

TEST_F(PipelineTest, SaysWhyAModelCannotServe) {
  serve(Engine::Vllm, {{Role::Prefill, test::closed_endpoint()}});
  make_pipeline();
  request(Api::Chat, R"({"model":"m","messages":[]})");
  EXPECT_EQ(sink.status, 503);
  EXPECT_EQ(code(), "no_workers");
  EXPECT_EQ(sink.headers.find("retry-after"), "1");
}

TEST_F(PipelineTest, PassesARefusalOn) {
  const std::string body = R"({ "error":{"message":"bad n","param":"n","code":422} })";
  const FakeEngine one(test::always(
      response(422, body, "Content-Type: application/problem+json\r\nX-Hop: 1\r\nServer: u\r\n")));
  serve_one(one.endpoint(), ForwardAuthorization::No);
  request(Api::Chat, R"({"model":"m","messages":[],"stream":true})");
  EXPECT_EQ(sink.status, 422);
  EXPECT_EQ(sink.body, body);
  EXPECT_EQ(sink.headers.find("content-type"), "application/problem+json");
  EXPECT_FALSE(sink.headers.find("server"));
  EXPECT_TRUE(counted("engine_rejected"));
}

TEST_F(PipelineTest, TellsAFailureInsideAStreamThatHasBegun) {
  const std::string token = "data: {\"choices\":[{\"text\":\"a\"}]}\n\n";
  const FakeEngine one(test::always(response(200, token)));
  serve_one(one.endpoint(), ForwardAuthorization::No);
  request(Api::Completions, R"({"model":"m","prompt":"p","stream":true})");
  EXPECT_EQ(sink.status, 200);
  ASSERT_EQ(sink.body.substr(0, token.size()), token);
  const std::string last = sink.body.substr(token.size());
  ASSERT_EQ(last.substr(0, 6), "data: ");
  EXPECT_EQ(json(last.substr(6))["error"]["code"], "stream_broken");
  EXPECT_THAT(sink.body, Not(HasSubstr("data: [DONE]")));
  EXPECT_TRUE(sink.ended);
  EXPECT_TRUE(counted("stream_broken"));
}

TEST_F(PipelineTest, TellsAFailureBeforeAStreamBeganByItsStatus) {
  const FakeEngine one(test::always(response(200, "data: {\"error\":\"no\"}\n\n")));
  serve_one(one.endpoint(), ForwardAuthorization::No);
  request(Api::Completions, R"({"model":"m","prompt":"p","stream":true})");
  EXPECT_EQ(sink.status, 502);
  EXPECT_EQ(code(), "engine_failed");
}

TEST_F(PipelineTest, TellsNothingToAClientThatHasLeft) {
  const FakeEngine one([](FakePeer& peer) {
    peer.read_request();
    peer.wait_for_drop();
  });
  serve_one(one.endpoint(), ForwardAuthorization::No);
  begin_request(Api::Chat, R"({"model":"m","messages":[]})");
  run_until([&] { return one.requests().size() == 1; });
  cancellation.request(handoff::client_gone());
  run_until([this] { return ended; });
  EXPECT_EQ(sink.answers, 0);
  EXPECT_TRUE(counted("client_gone"));
}

TEST_F(PipelineTest, TellsAClientThatIsStillThereThatItIsShuttingDown) {
  const FakeEngine one([](FakePeer& peer) {
    peer.read_request();
    peer.wait_for_drop();
  });
  serve_one(one.endpoint(), ForwardAuthorization::No);
  begin_request(Api::Chat, R"({"model":"m","messages":[]})");
  run_until([&] { return one.requests().size() == 1; });
  cancellation.request(Error(Errc::ShuttingDown, "the end"));
  run_until([this] { return ended; });
  EXPECT_EQ(sink.status, 503);
  EXPECT_EQ(code(), "shutting_down");
}

TEST_F(PipelineTest, EndsARequestWhoseTimeIsOver) {
  const FakeEngine one([](FakePeer& peer) {
    peer.read_request();
    peer.wait_for_drop();
  });
  serve_one(one.endpoint(), ForwardAuthorization::No);
  further.add("X-Request-Timeout-Ms", "100");
  request(Api::Chat, R"({"model":"m","messages":[]})");
  EXPECT_EQ(sink.status, 504);
  EXPECT_EQ(code(), "deadline_exceeded");
  EXPECT_TRUE(sink.given_up);
  EXPECT_TRUE(counted("deadline_exceeded"));
  EXPECT_THAT(metrics.render(), HasSubstr("baton_limit_refusals_total{limit=\"request\"} 1\n"));
  EXPECT_THAT(one.requests()[0].head, Not(HasSubstr("imeout")));
  EXPECT_TRUE(one.wait_for_drops(1));
  wait_for_legs();
  EXPECT_EQ(in_flight(), 0);
  EXPECT_EQ(worker(one.endpoint()).health().why(), "") << "it is not to blame";
}

TEST_F(PipelineTest, EndsAStreamWhoseTimeIsOver) {
  const std::string token = "data: {\"choices\":[{\"text\":\"a\"}]}\n\n";
  FakeEngine one([&](FakePeer& peer) {
    peer.read_request();
    peer.write(fmt::format("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n",
                           token.size(), token));
    peer.wait_for_drop();
  });
  serve_one(one.endpoint(), ForwardAuthorization::No);
  request_timeout = std::chrono::milliseconds(300);
  make_pipeline();
  request(Api::Completions, R"({"model":"m","prompt":"p","stream":true})");
  EXPECT_EQ(sink.status, 200);
  ASSERT_EQ(sink.body.substr(0, token.size()), token);
  EXPECT_EQ(json(sink.body.substr(token.size() + 6))["error"]["code"], "deadline_exceeded");
  EXPECT_TRUE(sink.ended);
  EXPECT_EQ(request_line()["status"], 200);
  EXPECT_EQ(request_line()["outcome"], "deadline_exceeded");
  EXPECT_TRUE(one.wait_for_drops(1));
}

TEST_F(PipelineTest, RefusesATimeThatMakesNoSense) {
  const FakeEngine one(test::always(response(200, "{}")));
  serve_one(one.endpoint(), ForwardAuthorization::No);
  further.add("X-Request-Timeout-Ms", "soon");
  request(Api::Chat, R"({"model":"m","messages":[]})");
  EXPECT_EQ(sink.status, 400);
  EXPECT_EQ(json(sink.body)["error"]["param"], "X-Request-Timeout-Ms");
  EXPECT_TRUE(one.requests().empty());
}

TEST_F(PipelineTest, TellsWhoServedInHeadersOfItsOwn) {
  const FakeEngine one(
      test::always(response(200, R"({"choices":[{"index":0,"finish_reason":"stop"}]})")));
  serve_one(one.endpoint(), ForwardAuthorization::No);
  request(Api::Chat, R"({"model":"m","messages":[]})");
  EXPECT_EQ(sink.headers.find("x-baton-request-id"), "id-1");
  EXPECT_EQ(sink.headers.find("x-baton-decode-worker"), one.endpoint().to_string());
}

TEST_F(PipelineTest, CallsOverloadWhatItIsToldTo) {
  const FakeEngine full(test::always(response(503, "full", "Retry-After: 7\r\n")));
  overload_status = 429;
  serve_one(full.endpoint(), ForwardAuthorization::No);
  request(Api::Chat, R"({"model":"m","messages":[]})");
  EXPECT_EQ(sink.status, 429);
  EXPECT_EQ(code(), "engine_overloaded");
  EXPECT_EQ(sink.headers.find("retry-after"), "7");
}

TEST_F(PipelineTest, StripsOrRefusesHandoffFieldsOfClients) {
  const FakeEngine one(
      test::always(response(200, R"({"choices":[{"index":0,"finish_reason":"stop"}]})")));
  serve(Engine::Vllm, {{Role::Aggregated, one.endpoint()}});
  make_pipeline();
  const char* body = R"({"model":"m","prompt":"p","kv_transfer_params":{"remote_port":1}})";
  request(Api::Completions, body);
  EXPECT_EQ(sink.status, 200);
  EXPECT_EQ(one.requests()[0].body, R"({"model":"m","prompt":"p"})");

  handoff_fields = config::ClientHandoffFields::Refuse;
  make_pipeline();
  sink.answers = 0;
  request(Api::Completions, body);
  EXPECT_EQ(sink.status, 400);
  EXPECT_EQ(json(sink.body)["error"]["param"], "kv_transfer_params");
  EXPECT_EQ(one.requests().size(), 1U);
}

struct Disaggregated : PipelineTest {
  void SetUp() override {
    serve(Engine::Vllm, {{Role::Prefill, first.endpoint()},
                         {Role::Prefill, second.endpoint()},
                         {Role::Decode, decode.endpoint()}});
    make_pipeline();
  }
  static std::string kept() {
    return response(200, R"({"choices":[{"finish_reason":"length"}],"kv_transfer_params":{"a":1},)"
                         R"("usage":{"prompt_tokens":9,"completion_tokens":1}})");
  }
  FakeEngine first{test::always(kept())};
  FakeEngine second{handoff::answers_when_told(kept())};
  FakeEngine decode{
      test::always(response(200, R"({"choices":[{"index":0,"finish_reason":"stop"}],)"
                                 R"("usage":{"prompt_tokens":9,"completion_tokens":5}})"))};
};

TEST_F(Disaggregated, TellsOfBothWorkers) {
  request(Api::Completions, R"({"model":"m","prompt":"p"})");
  EXPECT_EQ(sink.status, 200);
  EXPECT_EQ(sink.headers.find("x-baton-prefill-worker"), first.endpoint().to_string());
  EXPECT_EQ(sink.headers.find("x-baton-decode-worker"), decode.endpoint().to_string());
  const auto line = request_line();
  EXPECT_EQ(line["prefill_worker"], first.endpoint().to_string());
  EXPECT_EQ(line["decode_worker"], decode.endpoint().to_string());
  EXPECT_TRUE(line.contains("prefill_ms"));
  EXPECT_FALSE(line.contains("kv_transfer_ms")) << "the first token of a whole answer is not seen";
}

// What the prefill worker pinned is still to be released then.
TEST_F(Disaggregated, TellsThatTheTimeIsOverBeforeTheHandoffHasEnded) {
  further.add("X-Request-Timeout-Ms", "100");
  further.add("X-Baton-Prefill-Instance-Id", second.endpoint().to_string());
  trusted = scheduling::Trusted::Yes;
  begin_request(Api::Completions, R"({"model":"m","prompt":"p"})");
  run_until([this] { return sink.ended; });
  EXPECT_EQ(sink.status, 504);
  EXPECT_EQ(code(), "deadline_exceeded");
  EXPECT_FALSE(ended) << "its prefill has not answered";
  EXPECT_EQ(second.drops(), 0U);
  second.proceed();
  run_until([this] { return ended; });
  EXPECT_EQ(sink.answers, 1);
  wait_for_legs();
  EXPECT_EQ(decode.requests().size(), 1U) << "the release";
  EXPECT_EQ(in_flight(), 0);
  EXPECT_TRUE(counted("deadline_exceeded"));
  EXPECT_EQ(request_line()["status"], 504);
}

TEST_F(Disaggregated, FollowsPinsOfTrustedSourcesOnly) {
  further.add("X-Baton-Prefill-Instance-Id", second.endpoint().to_string());
  request(Api::Completions, R"({"model":"m","prompt":"p"})");
  EXPECT_EQ(first.requests().size(), 1U);
  EXPECT_THAT(first.requests()[0].head, Not(HasSubstr("Instance-Id")));
  trusted = scheduling::Trusted::Yes;
  sink.answers = 0;
  second.proceed();
  request(Api::Completions, R"({"model":"m","prompt":"p"})");
  EXPECT_EQ(second.requests().size(), 1U);
}

TEST_F(Disaggregated, RefusesPinsThatLeadNowhere) {
  trusted = scheduling::Trusted::Yes;
  further.add("X-Baton-Prefill-Instance-Id", "nobody");
  request(Api::Completions, R"({"model":"m","prompt":"p"})");
  EXPECT_EQ(sink.status, 400);
  EXPECT_EQ(code(), "invalid_routing");
  EXPECT_TRUE(first.requests().empty() && decode.requests().empty());
}

// prefill-router.md §2.11.
TEST_F(Disaggregated, AnswersWhoWouldServeWhereThatIsAllThatIsAsked) {
  trusted = scheduling::Trusted::Yes;
  request(Api::Completions,
          R"({"model":"m","prompt":"p","nvext":{"annotations":["query_instance_id"]}})");
  EXPECT_EQ(sink.status, 200);
  EXPECT_EQ(json(sink.body)["object"], "route");
  EXPECT_EQ(json(sink.body)["prefill"]["worker"], first.endpoint().to_string());
  EXPECT_TRUE(first.requests().empty() && decode.requests().empty());
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(Disaggregated, FansSeveralChoicesOut) {
  trusted = scheduling::Trusted::Yes;
  further.add("X-Baton-Prefill-Instance-Id", first.endpoint().to_string());
  request(Api::Completions, R"({"model":"m","prompt":"p","n":3})");
  EXPECT_EQ(sink.status, 200);
  ASSERT_EQ(json(sink.body)["choices"].size(), 3U);
  EXPECT_EQ(json(sink.body)["choices"][2]["index"], 2);
  EXPECT_EQ(json(sink.body)["usage"]["prompt_tokens"], 9);
  EXPECT_EQ(json(sink.body)["usage"]["completion_tokens"], 15);
  EXPECT_EQ(first.requests().size(), 3U);
  EXPECT_TRUE(counted("ok")) << "one request, whatever it took";
}

TEST_F(Disaggregated, RefusesANumberOfChoicesThatMakesNoSense) {
  for (const char* n : {"0", "-1", "129", "1e99"}) {
    sink.answers = 0;
    request(Api::Completions, std::string(R"({"model":"m","prompt":"p","n":)") + n + "}");
    EXPECT_EQ(sink.status, 400) << n;
    EXPECT_EQ(json(sink.body)["error"]["param"], "n") << n;
  }
  EXPECT_TRUE(first.requests().empty());
}

TEST_F(PipelineTest, LeavesSeveralChoicesToAWorkerThatDoesBoth) {
  const FakeEngine one(
      test::always(response(200, R"({"choices":[{"index":0,"finish_reason":"stop"}]})")));
  serve_one(one.endpoint(), ForwardAuthorization::No);
  request(Api::Completions, R"({"model":"m","prompt":"p","n":3})");
  ASSERT_EQ(one.requests().size(), 1U);
  EXPECT_EQ(json(one.requests()[0].body)["n"], 3);
}

// A leg that only releases blocks is not an answer.
TEST_F(Disaggregated, NeverCountsAReleaseAsServed) {
  trusted = scheduling::Trusted::Yes;
  further.add("X-Baton-Prefill-Instance-Id", second.endpoint().to_string());
  begin_request(Api::Completions, R"({"model":"m","prompt":"p"})");
  run_until([&] { return second.pauses() == 1; });
  cancellation.request(handoff::client_gone());
  second.proceed();
  run_until([this] { return ended; });
  wait_for_legs();
  EXPECT_EQ(decode.requests().size(), 1U);
  EXPECT_TRUE(counted("client_gone"));
  EXPECT_THAT(metrics.render(), HasSubstr("baton_requests_total{model=\"m\",outcome=\"ok\"} 0\n"));
  EXPECT_THAT(metrics.render(), HasSubstr("baton_completion_tokens_total{model=\"m\"} 0\n"));
  EXPECT_THAT(metrics.render(), HasSubstr("baton_handoff_releases_total{model=\"m\"} 1\n"));
  EXPECT_THAT(metrics.render(), HasSubstr("baton_wasted_prefill_tokens_total{model=\"m\"} 9\n"));
  EXPECT_EQ(request_line()["status"], 499);
  EXPECT_FALSE(request_line().contains("decode_worker"));
  EXPECT_EQ(in_flight(), 0);
}

struct EndedInPrefill : PipelineTest {
  void SetUp() override {
    serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, decode.endpoint()}});
    make_pipeline();
  }
  FakeEngine prefill{test::always(response(
      200, R"({"id":"c","choices":[{"index":0,"text":"end","finish_reason":"stop"}],)"
           R"("usage":{"prompt_tokens":4,"completion_tokens":1},"kv_transfer_params":{"a":1}})"))};
  FakeEngine decode{test::always(response(200, "{}"))};
};

TEST_F(EndedInPrefill, IsAnsweredWhole) {
  request(Api::Completions, R"({"model":"m","prompt":"p"})");
  EXPECT_EQ(json(sink.body),
            json(R"({"id":"c","choices":[{"index":0,"text":"end","finish_reason":"stop"}],)"
                 R"("usage":{"prompt_tokens":4,"completion_tokens":1}})"));
  EXPECT_EQ(sink.headers.find("content-type"), "application/json");
  EXPECT_TRUE(decode.requests().empty());
  EXPECT_EQ(request_line()["prompt_tokens"], 4);
}

TEST_F(EndedInPrefill, IsAnsweredAsAStreamWhereOneWasAskedFor) {
  request(Api::Completions, R"({"model":"m","prompt":"p","stream":true})");
  EXPECT_THAT(std::string(*sink.headers.find("content-type")), HasSubstr("text/event-stream"));
  EXPECT_THAT(sink.body, HasSubstr("\"text\":\"end\""));
  EXPECT_THAT(sink.body, testing::EndsWith("data: [DONE]\n\n"));
  EXPECT_THAT(sink.body, Not(HasSubstr("usage")));
  EXPECT_TRUE(counted("ok"));
}

TEST_F(EndedInPrefill, HasItsUsageWhereItWasAskedFor) {
  request(Api::Completions,
          R"({"model":"m","prompt":"p","stream":true,"stream_options":{"include_usage":true}})");
  EXPECT_THAT(sink.body, HasSubstr("\"usage\":{\"completion_tokens\":1,\"prompt_tokens\":4}"));
}

}  // namespace
}  // namespace baton::pipeline
