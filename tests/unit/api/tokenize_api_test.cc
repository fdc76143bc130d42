// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "api/tokenize_api.h"

#include "support/io_fixture.h"
#include "support/tiny_model.h"
#include "unit/api/answer_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace baton::api {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

struct TokenizeApiTest : test::IoFixture {
  TokenizeApiTest() {
    config::Model model;
    model.name = "m";
    model.aliases = {"also-m"};
    model.tokens = {.by = model::Tokenize::Local, .tokenizer = files.folder(), .chat_template = {}};
    config.models.push_back(model);
  }
  void start_router() {
    fleet = std::make_unique<fleet::Fleet>(config, metrics, log);
    EXPECT_TRUE(tokenizers.configure(config.models));
    routes.emplace(tokenize_routes(*fleet, tokenizers, cpu, limits));
  }
  Json call(const std::string& path, const std::string& body) {
    if (!routes) start_router();
    answer = {};
    run([&]() -> awaitable<void> {
      co_await call_route(*routes, "POST", path, body, answer, {}, &memory);
    });
    return Json::parse(answer.body);
  }
  std::string refused(const std::string& path, const std::string& body, int status = 400) {
    const Json json = call(path, body);
    EXPECT_EQ(answer.status, status) << answer.body;
    return json["error"]["message"];
  }

  test::TinyModel files;
  config::Config config;
  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};
  std::unique_ptr<fleet::Fleet> fleet;
  pipeline::Tokenizers tokenizers{std::size_t{1} << 20, metrics};
  net::CpuPool cpu{1};
  pipeline::LimitRefusals limits{metrics};
  std::optional<http::Routes> routes;
  AnswerRecorder answer;
  MemoryBudget memory{std::size_t{8} << 20U};
};

TEST_F(TokenizeApiTest, TokenizesAPromptAsVllmWould) {
  EXPECT_EQ(
      call("/tokenize", R"({"model":"m","prompt":"hi!"})"),
      Json::parse(R"({"count":3,"max_model_len":4096,"tokens":[260,256,33],"token_strs":null})"));
  EXPECT_EQ(call("/tokenize", R"({"prompt":"hi","add_special_tokens":false,
                                  "return_token_strs":true})"),
            Json::parse(R"({"count":1,"max_model_len":4096,"tokens":[256],"token_strs":["hi"]})"));
}

TEST_F(TokenizeApiTest, TokenizesAChat) {
  constexpr const char* kChat = R"({"model":"also-m","messages":[{"role":"user","content":"hi"}])";
  EXPECT_EQ(call("/tokenize", std::string(kChat) + "}")["tokens"], Json({260, 257, 256, 259, 258}));
  EXPECT_EQ(call("/tokenize", std::string(kChat) + R"(,"add_generation_prompt":false})")["tokens"],
            Json({260, 257, 256, 259}));
}

TEST_F(TokenizeApiTest, BringsTextBack) {
  EXPECT_EQ(call("/detokenize", R"({"model":"m","tokens":[257,256,32,195,164]})"),
            Json::parse(R"({"prompt":"<|user|>hi ä"})"));
  EXPECT_EQ(call("/detokenize", R"({"model":"m","tokens":[]})"), Json::parse(R"({"prompt":""})"));
}

TEST_F(TokenizeApiTest, RefusesWhatThereIsNoMemoryFor) {
  const std::string prompt = R"({"model":"m","prompt":")" + std::string(400'000, 'x') + "\"";
  EXPECT_EQ(call("/tokenize", prompt + "}")["count"], 400'001);
  refused("/tokenize", prompt + R"(,"return_token_strs":true})", 503);
  EXPECT_THAT(answer.body, HasSubstr("memory_exhausted"));
  // Each token is written in four bytes and stands for eight.
  std::string ids = "257";
  for (int i = 0; i < 150'000; ++i) ids += ",257";
  refused("/detokenize", R"({"model":"m","tokens":[)" + ids + "]}", 503);
  EXPECT_THAT(answer.body, HasSubstr("memory_exhausted"));
  EXPECT_EQ(memory.used(), 0U);
}

TEST_F(TokenizeApiTest, CountsQuestionsThatRunIntoALimit) {
  refused("/tokenize", R"({"prompt":)" + std::string(5000, '[') + std::string(5000, ']') + "}");
  refused("/tokenize", "{}");
  EXPECT_THAT(metrics.render(), HasSubstr("baton_limit_refusals_total{limit=\"json_depth\"} 1\n"));
}

TEST_F(TokenizeApiTest, SaysWhatIsWrongWithAQuestion) {
  EXPECT_THAT(refused("/tokenize", "{"), HasSubstr("JSON"));
  EXPECT_THAT(refused("/tokenize", R"({"model":"x","prompt":"hi"})", 404), HasSubstr("\"x\""));
  EXPECT_THAT(refused("/tokenize", R"({"model":"m"})"), HasSubstr("neither"));
  EXPECT_THAT(refused("/tokenize", R"({"model":"m","prompt":["a","b"]})"), HasSubstr("one text"));
  EXPECT_THAT(refused("/detokenize", R"({"model":"m","tokens":"hi"})"), HasSubstr("list"));
  EXPECT_THAT(refused("/detokenize", R"({"model":"m","tokens":[1,-1]})"), HasSubstr("tokens[1]"));
  EXPECT_THAT(refused("/detokenize", R"({"model":"m","tokens":[99999]})"), HasSubstr("vocabulary"));
  EXPECT_THAT(refused("/tokenize", R"({"model":"m","messages":[{"role":"broken","content":""}]})"),
              HasSubstr("no such role here"));
}

TEST_F(TokenizeApiTest, SaysSoWhereThereIsNoTokenizer) {
  config.models.front().tokens = {};
  EXPECT_THAT(refused("/tokenize", R"({"model":"m","prompt":"hi"})"),
              HasSubstr("models[].tokenizer"));
}

TEST_F(TokenizeApiTest, AmongSeveralModelsOneMustBeNamed) {
  config.models.push_back(config.models.front());
  config.models.back().name = "n";
  config.models.back().aliases = {};
  EXPECT_THAT(refused("/tokenize", R"({"prompt":"hi"})"), HasSubstr("\"model\""));
}

TEST_F(TokenizeApiTest, NeedsAKeyLikeTheRestOfTheApi) {
  start_router();
  for (const http::Route& route : tokenize_routes(*fleet, tokenizers, cpu, limits))
    EXPECT_EQ(route.access, http::Access::Key) << route.path;
}

// An engine may have been started with less than the model takes.
TEST_F(TokenizeApiTest, TellsTheContextOfTheWorkers) {
  model::WorkerSpec spec;
  spec.endpoint = {"127.0.0.1", 1};
  spec.role = model::Role::Aggregated;
  config.models.front().workers.push_back(spec);
  start_router();
  const auto pools = fleet->find("m")->pools();
  const auto members = pools->front()->workers(model::Role::Aggregated).members();
  members->workers.front()->has_max_model_len(2048);
  EXPECT_EQ(call("/tokenize", R"({"model":"m","prompt":"hi"})")["max_model_len"], 2048);
}

}  // namespace
}  // namespace baton::api
