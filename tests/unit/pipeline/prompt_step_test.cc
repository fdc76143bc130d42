// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/prompt_step.h"

#include "support/tiny_model.h"
#include "unit/handoff/handoff_fixture.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::pipeline {
namespace {

using engine::Api;
using handoff::kChat;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kImage =
    R"({"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi"},
        {"type":"image_url","image_url":{"url":"http://127.0.0.1/cat.png"}}]}]})";

// Which each engine writes in its own way.
constexpr const char* kTools = R"({"model":"m","messages":[{"role":"user","content":"hi"}],
    "tools":[{"type":"function","function":{"name":"f","parameters":{}}}]})";

struct PromptStepTest : handoff::HandoffFixture {
  // Who serves "m", and how its prompts become tokens.
  void configure(config::Tokens tokens, const model::Endpoint& worker = {"127.0.0.1", 1},
                 Engine engine = Engine::Vllm) {
    configure(std::move(tokens), {spec(engine, Role::Aggregated, worker)});
  }
  void configure(config::Tokens tokens, std::vector<model::WorkerSpec> workers) {
    options.tokens = std::move(tokens);
    serve(std::move(workers));
    ASSERT_TRUE(tokenizers.configure(config.models));
  }
  static config::Tokens by_engine() {
    return {.by = model::Tokenize::Engine, .tokenizer = {}, .chat_template = {}};
  }
  // The workers of "m" say what they have cached.
  kvcache::HashPlan publish_plan() {
    kvcache::KvCacheView::Table table;
    table.plans["m"] = {.shapes = {{.size = 2}}, .lora = {}};
    caches.publish(table);
    return table.plans["m"];
  }
  config::Tokens local() const {
    return {.by = model::Tokenize::Local, .tokenizer = files.folder(), .chat_template = {}};
  }
  void begin(Api api, std::string body, PerPrompt per_prompt = PerPrompt::No) {
    got.reset();
    start([this, api, body, per_prompt]() -> awaitable<void> {
      const handoff::HandoffRequest wanted = job(api, body);
      got.emplace(co_await step.tokens(wanted, per_prompt, record, cancellation));
    });
  }
  void ask(Api api, std::string body, PerPrompt per_prompt = PerPrompt::No) {
    begin(api, std::move(body), per_prompt);
    run_until([this] { return got.has_value(); });
  }
  // The pool's one thread does nothing else until `gate` opens.
  void keep_pool_busy(std::latch& gate) {
    pool_is_kept = pool_is_freed = false;
    start([this, &gate]() -> awaitable<void> {
      co_await cpu.run([&] {
        pool_is_kept = true;
        gate.wait();
        return 0;
      });
      pool_is_freed = true;
    });
    run_until([this] { return pool_is_kept.load(); });
  }
  void expect_nothing_known() const {
    EXPECT_THAT(json(), IsEmpty());
    EXPECT_THAT(got->value().blocks, IsEmpty());
    EXPECT_EQ(record.tokens, TokenSource::Inexact);
  }
  std::vector<std::string> json() const {
    std::vector<std::string> texts;
    for (const auto& text : got->value().json) texts.push_back(*text);
    return texts;
  }
  // A completion too long to be tokenized where it is read.
  static std::string long_body(std::size_t words) {
    std::string text;
    for (std::size_t i = 0; i < words; ++i) text += "hi ";
    return R"({"model":"m","prompt":")" + text + "\"}";
  }

  test::TinyModel files;
  Tokenizers tokenizers{std::size_t{1} << 20, metrics};
  kvcache::KvCacheView caches{config::KvIndex(), metrics, log};
  PromptStep step{tokenizers, caches, cpu, EngineTokens(pool, cpu, 1024 * 1024)};
  RequestRecord record;
  std::optional<Result<PromptTokens>> got;
  std::atomic<bool> pool_is_kept = false;
  bool pool_is_freed = false;
};

TEST_F(PromptStepTest, AModelWithoutTokenizerGoesOnWithoutTokens) {
  configure({});
  ask(Api::Chat, kChat);
  EXPECT_THAT(json(), IsEmpty());
  EXPECT_EQ(record.tokens, TokenSource::Off);
  EXPECT_FALSE(record.tokenize_time);
}

TEST_F(PromptStepTest, PromptsThatComeAsIdsNeedNoTokenizer) {
  configure({});
  ask(Api::Completions, R"({"model":"m","prompt":[1,2,3]})");
  EXPECT_EQ(record.tokens, TokenSource::Client);
  EXPECT_EQ(record.prompt_length, 3U);
  EXPECT_THAT(json(), IsEmpty());  // they are in the body already
  record = {};
  ask(Api::Completions, R"({"model":"m","prompt":["a","b"]})");
  EXPECT_EQ(record.tokens, TokenSource::Off);
  EXPECT_EQ(record.prompt_length, 0U);
}

TEST_F(PromptStepTest, IdsThatAWorkerDoesNotHaveAreRefused) {
  const model::Endpoint other{"127.0.0.1", 2};
  serve({spec(Engine::Sglang, Role::Aggregated, {"127.0.0.1", 1}),
         spec(Engine::Sglang, Role::Aggregated, other)});
  const std::string chat = R"({"model":"m","messages":[],"input_ids":[99,100]})";
  ask(Api::Chat, chat);
  EXPECT_TRUE(*got) << "nobody says how many there are";
  worker({"127.0.0.1", 1}).has_vocabulary(200);
  worker(other).has_vocabulary(100);
  ask(Api::Chat, chat);
  ASSERT_FALSE(*got);
  EXPECT_EQ(got->error().code(), Errc::InvalidRequest);
  EXPECT_EQ(got->error().param(), "input_ids[1]");
  EXPECT_THAT(got->error().message(), HasSubstr("from 0 to 99"));
  ask(Api::Completions, R"({"model":"m","prompt":[[1],[99]]})");
  EXPECT_TRUE(*got);
}

TEST_F(PromptStepTest, AChatIsRenderedAndTokenized) {
  configure(local());
  ask(Api::Chat, kChat);
  EXPECT_THAT(json(), ElementsAre("[260,257,256,259,258]"));
  EXPECT_EQ(record.tokens, TokenSource::Local);
  EXPECT_EQ(record.prompt_length, 5U);
  EXPECT_TRUE(record.tokenize_time);
}

TEST_F(PromptStepTest, ALongPromptIsTheSameOnAnotherThread) {
  configure(local());
  ask(Api::Completions, long_body(30'000));
  EXPECT_EQ(record.prompt_length, 60'001U);
  EXPECT_THAT(json().at(0), testing::StartsWith("[260,256,32,256,32,"));
}

TEST_F(PromptStepTest, EachPromptOfAFannedOutRequestIsForItself) {
  configure(local());
  constexpr const char* kTwo = R"({"model":"m","prompt":["hi","a"]})";
  ask(Api::Completions, kTwo, PerPrompt::Yes);
  EXPECT_THAT(json(), ElementsAre("[260,256]", "[260,97]"));
  ask(Api::Completions, kTwo, PerPrompt::No);
  EXPECT_THAT(json(), ElementsAre("[[260,256],[260,97]]"));
}

TEST_F(PromptStepTest, PromptsAreHashedAsTheModelsCachesHaveThem) {
  configure(local());
  ask(Api::Chat, kChat);
  EXPECT_THAT(got->value().blocks, IsEmpty()) << "nobody's cache is known";
  const kvcache::HashPlan plan = publish_plan();
  ask(Api::Chat, kChat);
  ASSERT_EQ(got->value().blocks.size(), 1U);
  const std::vector<kvcache::TokenId> ids{260, 257, 256, 259, 258};
  const kvcache::PromptBlocks expected = kvcache::hash_prompt(plan, ids, "");
  const kvcache::PromptBlocks& made = *got->value().blocks[0];
  EXPECT_EQ(made.tokens, 5U);
  ASSERT_EQ(made.by_shape.size(), 1U);
  EXPECT_EQ(made.by_shape[0].sequence, expected.by_shape[0].sequence);
  ask(Api::Completions, R"({"model":"m","prompt":["hi","a"]})", PerPrompt::Yes);
  EXPECT_EQ(got->value().blocks.size(), 2U);
}

TEST_F(PromptStepTest, NobodyWritesIdsThatNobodyIsToGet) {
  config::Tokens quiet = local();
  quiet.send = model::SendTokenIds::Never;
  configure(quiet);
  ask(Api::Chat, kChat);
  EXPECT_THAT(json(), IsEmpty());
  EXPECT_EQ(got->value().send, model::SendTokenIds::Never);
  EXPECT_EQ(record.prompt_length, 5U);
}

TEST_F(PromptStepTest, WhatOnlyTheEngineCanTokenizeIsNotGuessed) {
  configure(local());
  publish_plan();
  ask(Api::Chat, kChat);
  EXPECT_EQ(got->value().blocks.size(), 1U);
  ask(Api::Chat, kImage);
  expect_nothing_known();
}

TEST_F(PromptStepTest, WhatTheTemplateSaysIsTheClientsError) {
  configure(local());
  ask(Api::Chat, R"({"model":"m","messages":[{"role":"broken","content":"hi"}]})");
  ASSERT_FALSE(*got);
  EXPECT_EQ(got->error().code(), Errc::InvalidRequest);
  EXPECT_THAT(got->error().message(), HasSubstr("no such role here"));
  EXPECT_EQ(record.tokens, TokenSource::Failed);
}

// How much a short body makes a template do is for whoever sends it to say.
TEST_F(PromptStepTest, AShortBodyThatTakesLongToRenderIsRenderedOnAnotherThread) {
  files.write("chat_template.jinja",
              "{% for i in range(rounds) %}{% for j in range(rounds) %}{% endfor %}{% endfor %}"
              "{{ 'hi' * words }}");
  configure(local());
  const auto chat = [](int rounds, int words) {
    return fmt::format(R"({{"model":"m","messages":[{{"role":"user","content":"hi"}}],)"
                       R"("chat_template_kwargs":{{"rounds":{},"words":{}}}}})",
                       rounds, words);
  };
  // Many steps; and few, but much to tokenize.
  for (const auto& [rounds, words] : {std::pair(200, 3), std::pair(1, 20'000)}) {
    std::latch gate(1);
    keep_pool_busy(gate);
    ask(Api::Chat, chat(3, 2));
    EXPECT_THAT(json(), ElementsAre("[256,256]")) << "what takes no time needs no other thread";
    begin(Api::Chat, chat(rounds, words));
    run_until([this] { return got || cpu.waiting() == 1; });
    EXPECT_FALSE(got);
    gate.count_down();
    run_until([this] { return pool_is_freed && got; });
    EXPECT_EQ(record.tokens, TokenSource::Local);
    EXPECT_EQ(record.prompt_length, static_cast<std::size_t>(words));
    EXPECT_THAT(json().at(0), testing::StartsWith("[256,256,256"));
  }
}

TEST_F(PromptStepTest, WhatATemplateRefusesIsRefusedAtOnceAndNotTriedAgain) {
  configure(local());
  std::latch gate(1);
  keep_pool_busy(gate);
  ask(Api::Chat, R"({"model":"m","messages":[{"role":"broken","content":"hi"}]})");
  EXPECT_FALSE(*got);
  gate.count_down();
  run_until([this] { return pool_is_freed; });
}

TEST_F(PromptStepTest, WhoeverLeavesIsNotTokenizedFor) {
  configure(local());
  std::latch gate(1);
  keep_pool_busy(gate);
  begin(Api::Completions, long_body(3'000));
  run_until([this] { return cpu.waiting() == 1; });
  cancellation.request(Error(Errc::ClientGone, "gone"));
  gate.count_down();
  run_until([this] { return pool_is_freed && got.has_value(); });
  ASSERT_FALSE(*got);
  EXPECT_EQ(got->error().code(), Errc::ClientGone);
  const auto stats = tokenizers.find("m")->preprocessor->cache_stats();
  EXPECT_EQ(stats.misses, 0U) << "the text was tokenized for nobody";
}

TEST_F(PromptStepTest, AnEngineIsAskedWhereItIsToBe) {
  const test::FakeEngine engine(test::by_path(
      {{"/v1/chat/completions/render", test::response(200, R"({"token_ids":[7,8]})")}}));
  configure(by_engine(), engine.endpoint());
  ask(Api::Chat, kChat);
  EXPECT_THAT(json(), ElementsAre("[7,8]"));
  EXPECT_EQ(record.tokens, TokenSource::Engine);
  EXPECT_EQ(record.prompt_length, 2U);
}

TEST_F(PromptStepTest, AnEngineThatNeverAnswersKeepsNobodyWhoLeaves) {
  const test::FakeEngine engine([](test::FakePeer& peer) {
    peer.read_request();
    peer.wait_for_drop();
  });
  configure(by_engine(), engine.endpoint());
  begin(Api::Chat, kChat);
  run_until([&] { return engine.requests().size() == 1; });
  cancellation.request(Error(Errc::ClientGone, "gone"));
  run_until([this] { return got.has_value(); });
  EXPECT_EQ(got->error().code(), Errc::ClientGone);
  EXPECT_TRUE(engine.wait_for_drops(1));
}

TEST_F(PromptStepTest, WhatAnEngineSaidIsNotAskedTwice) {
  const test::FakeEngine engine(test::by_path(
      {{"/v1/chat/completions/render", test::response(200, R"({"token_ids":[7,8]})")}}));
  configure(by_engine(), engine.endpoint());
  ask(Api::Chat, kChat);
  ask(Api::Chat, kChat);
  EXPECT_THAT(json(), ElementsAre("[7,8]"));
  EXPECT_EQ(record.tokens, TokenSource::Engine);
  EXPECT_EQ(engine.requests().size(), 1U);
}

TEST_F(PromptStepTest, NoEngineIsAskedForTheTokensOfAnImage) {
  const test::FakeEngine engine(test::always(test::response(200, R"({"token_ids":[7,8]})")));
  configure(by_engine(), engine.endpoint());
  publish_plan();
  ask(Api::Chat, kImage);
  expect_nothing_known();
  EXPECT_TRUE(engine.requests().empty());
  ask(Api::Chat, kChat);
  EXPECT_EQ(got->value().blocks.size(), 1U);
}

// What a worker said of the messages alone is remembered, and is no answer for these.
TEST_F(PromptStepTest, NoEngineIsAskedForAChatThatBringsItsOwnIds) {
  const test::FakeEngine engine(test::always(test::response(200, R"({"tokens":[7,8]})")));
  configure(by_engine(), engine.endpoint(), Engine::Sglang);
  publish_plan();
  ask(Api::Chat, kChat);
  EXPECT_EQ(got->value().blocks.size(), 1U);
  for (const char* const field : {"input_ids", "prompt_token_ids"}) {
    SCOPED_TRACE(field);
    ask(Api::Chat, fmt::format(R"({{"model":"m","messages":[{{"role":"user","content":"hi"}}],)"
                               R"("{}":[1,2]}})",
                               field));
    expect_nothing_known();
  }
  EXPECT_EQ(engine.requests().size(), 1U);
}

TEST_F(PromptStepTest, NoEngineIsAskedForACompletionThatIsMoreThanItsPrompt) {
  const test::FakeEngine engine(test::always(test::response(200, R"({"tokens":[7,8]})")));
  configure(by_engine(), engine.endpoint(), Engine::Sglang);
  publish_plan();
  ask(Api::Completions, R"({"model":"m","prompt":"hi"})");
  EXPECT_EQ(got->value().blocks.size(), 1U);
  for (const char* const field :
       {R"("suffix":"s")", R"("truncate_prompt_tokens":1)", R"("prompt_embeds":"AA==")"}) {
    SCOPED_TRACE(field);
    ask(Api::Completions, fmt::format(R"({{"model":"m","prompt":"hi",{}}})", field));
    expect_nothing_known();
  }
  EXPECT_EQ(engine.requests().size(), 1U);
}

TEST_F(PromptStepTest, WhatOneEngineSaysIsNotTakenForAnother) {
  const test::FakeEngine engine(test::always(test::response(200, R"({"token_ids":[7,8]})")));
  configure(by_engine(), {spec(Engine::Vllm, Role::Aggregated, engine.endpoint()),
                          spec(Engine::Trtllm, Role::Aggregated, {"127.0.0.1", 1})});
  publish_plan();
  ask(Api::Chat, kTools);
  expect_nothing_known();
  EXPECT_TRUE(engine.requests().empty());
  ask(Api::Chat, kChat);
  EXPECT_EQ(record.tokens, TokenSource::Engine) << "which all read alike";
}

TEST_F(PromptStepTest, WhatAnEngineSaysHoldsForItsLike) {
  const test::FakeEngine engine(test::always(test::response(200, R"({"tokens":[7,8]})")));
  configure(by_engine(), engine.endpoint(), Engine::Sglang);
  ask(Api::Chat, kTools);
  EXPECT_THAT(json(), ElementsAre("[7,8]"));
  EXPECT_EQ(record.tokens, TokenSource::Engine);
}

TEST_F(PromptStepTest, WhatEnginesShapeDifferentlyIsExactForVllmOnly) {
  configure(local(), {"127.0.0.1", 1}, Engine::Sglang);
  publish_plan();
  ask(Api::Chat, kTools);
  expect_nothing_known();
  ask(Api::Chat, kChat);
  EXPECT_EQ(record.tokens, TokenSource::Local);
}

TEST_F(PromptStepTest, TheSameIsExactWhereAllWorkersAreVllm) {
  configure(local());
  ask(Api::Chat, kTools);
  EXPECT_EQ(record.tokens, TokenSource::Local);
}

TEST_F(PromptStepTest, TensorRtWorkersMayGetIdsInAnyCase) {
  config::Tokens quiet = local();
  quiet.send = model::SendTokenIds::Never;
  configure(quiet, {"127.0.0.1", 1}, Engine::Trtllm);
  ask(Api::Chat, kChat);
  EXPECT_THAT(json(), ElementsAre("[260,257,256,259,258]"));
}

TEST_F(PromptStepTest, AListWithoutIdsIsNoPrompt) {
  configure(local());
  ask(Api::Completions, R"({"model":"m","prompt":"","add_special_tokens":false})");
  EXPECT_THAT(json(), IsEmpty());
  EXPECT_EQ(record.tokens, TokenSource::Local);
}

TEST_F(PromptStepTest, MorePromptsThanBatonTokenizesGoOnAsText) {
  configure(local());
  std::string list = "\"a\"";
  for (int i = 0; i < 300; ++i) list += ",\"a\"";
  ask(Api::Completions, R"({"model":"m","prompt":[)" + list + "]}");
  ASSERT_TRUE(*got);
  EXPECT_EQ(record.tokens, TokenSource::Inexact);
}

TEST_F(PromptStepTest, AnEngineThatDoesNotKnowCostsNobodyTheRequest) {
  const test::FakeEngine engine(test::always(test::response(500, "out of order")));
  configure(by_engine(), engine.endpoint());
  ask(Api::Chat, kChat);
  ASSERT_TRUE(*got);
  EXPECT_THAT(json(), IsEmpty());
  EXPECT_EQ(record.tokens, TokenSource::Failed);
}

TEST_F(PromptStepTest, WithoutTheMemoryToTokenizeItALongPromptGoesOnAsText) {
  configure(local());
  MemoryShare others(&memory);
  ASSERT_TRUE(others.cover(memory.limit() - 1'100'000));
  const std::string body = R"({"model":"m","prompt":")" + std::string(200'000, 'x') + "\"}";
  start([&]() -> awaitable<void> {
    handoff::HandoffRequest wanted = job(Api::Completions, "{}");
    wanted.body = (co_await step.read(body, MemoryShare(&memory))).value();
    got.emplace(co_await step.tokens(wanted, PerPrompt::No, record, cancellation));
  });
  run_until([this] { return got.has_value(); });
  ASSERT_TRUE(*got);
  EXPECT_THAT(json(), IsEmpty());
  EXPECT_EQ(record.tokens, TokenSource::Failed);
  EXPECT_THAT(record.tokens_reason, HasSubstr("memory"));
}

TEST_F(PromptStepTest, ALongBodyThatIsNoJsonIsRefusedAllTheSame) {
  std::optional<Errc> code;
  start([&]() -> awaitable<void> {
    auto read = co_await step.read("{\"prompt\":\"" + std::string(200'000, 'x'), {});
    code = read.error().code();
  });
  run_until([&] { return code.has_value(); });
  EXPECT_EQ(code, Errc::InvalidJson);
}

}  // namespace
}  // namespace baton::pipeline
