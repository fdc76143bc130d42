// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/tokenize_request.h"

#include "unit/engine/client_request.h"
#include "unit/http_client/exchange_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::engine {
namespace {

using model::Engine;
using model::Version;
using test::FakeEngine;
using test::response;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using tokenizer::TokenIds;

TEST(TokenRoutes, FollowTheEngineAndItsRelease) {
  EXPECT_EQ(token_route(Engine::Vllm, Version{0, 15, 9}), TokenRoute::Tokenize);
  EXPECT_EQ(token_route(Engine::Vllm, Version{0, 16, 0}), TokenRoute::Render);
  EXPECT_EQ(token_route(Engine::Vllm, std::nullopt), TokenRoute::Render);
  EXPECT_EQ(token_route(Engine::Sglang, Version{0, 5, 18}), TokenRoute::Tokenize);
  EXPECT_EQ(token_route(Engine::Trtllm, Version{9, 0, 0}), TokenRoute::None);
}

struct Asked {
  std::string path;
  std::vector<nlohmann::json> bodies;  // null where there is nothing to ask
};
std::optional<Asked> asked(Api api, const std::string& body, Engine engine, TokenRoute route,
                           const char* model = "") {
  const ClientRequest request(api, body, model);
  const auto question = token_question(request.call, engine, route);
  if (!question) return std::nullopt;
  Asked out{std::string(question->path), {}};
  for (const auto& part : question->parts)
    out.bodies.push_back(part.body.empty() ? nlohmann::json() : json(part.body));
  return out;
}

TEST(TokenQuestion, IsTheRequestItselfWhereTheEngineRenders) {
  const auto chat =
      asked(Api::Chat,
            R"({"model":"alias","messages":[{"role":"user","content":"hi"}],"tools":[1],)"
            R"("documents":[2],"kv_transfer_params":{"a":1},"stream":true})",
            Engine::Vllm, TokenRoute::Render, "m");
  ASSERT_TRUE(chat);
  EXPECT_EQ(chat->path, "/v1/chat/completions/render");
  EXPECT_THAT(chat->bodies,
              ElementsAre(json(R"({"model":"m","messages":[{"role":"user","content":"hi"}],)"
                               R"("tools":[1],"documents":[2],"stream":true})")));
  const auto text = asked(Api::Completions, R"({"model":"m","prompt":["a","b"]})", Engine::Vllm,
                          TokenRoute::Render);
  ASSERT_TRUE(text);
  EXPECT_EQ(text->path, "/v1/completions/render");
  EXPECT_THAT(text->bodies, ElementsAre(json(R"({"model":"m","prompt":["a","b"]})")));
}

TEST(TokenQuestion, OfAnOlderVllmHasWhatTokenizeTakes) {
  const auto chat =
      asked(Api::Chat,
            R"({"model":"alias","messages":[1],"tools":[2],"add_generation_prompt":false,)"
            R"("continue_final_message":true,"add_special_tokens":false,)"
            R"("chat_template_kwargs":{"k":1},"temperature":1,"stream":true,"max_tokens":null})",
            Engine::Vllm, TokenRoute::Tokenize, "m");
  ASSERT_TRUE(chat);
  EXPECT_EQ(chat->path, "/tokenize");
  EXPECT_THAT(chat->bodies,
              ElementsAre(json(R"({"model":"m","messages":[1],"tools":[2],)"
                               R"("add_generation_prompt":false,"continue_final_message":true,)"
                               R"("add_special_tokens":false,"chat_template_kwargs":{"k":1}})")));
  const auto text =
      asked(Api::Completions, R"({"model":"m","prompt":["a","b"],"add_special_tokens":false})",
            Engine::Vllm, TokenRoute::Tokenize);
  ASSERT_TRUE(text);
  EXPECT_THAT(text->bodies,
              ElementsAre(json(R"({"model":"m","add_special_tokens":false,"prompt":"a"})"),
                          json(R"({"model":"m","add_special_tokens":false,"prompt":"b"})")));
}

TEST(TokenQuestion, IsNotAskedWhereTokenizeDoesNotKnowAFieldOfThePrompt) {
  for (const char* field :
       {R"("documents":[1])", R"("reasoning_effort":"high")", R"("mm_processor_kwargs":{"a":1})"}) {
    const std::string body = std::string(R"({"messages":[1],"prompt":"p",)") + field + "}";
    EXPECT_FALSE(asked(Api::Chat, body, Engine::Vllm, TokenRoute::Tokenize)) << field;
    EXPECT_FALSE(asked(Api::Completions, body, Engine::Vllm, TokenRoute::Tokenize)) << field;
    EXPECT_TRUE(asked(Api::Chat, body, Engine::Vllm, TokenRoute::Render)) << field;
    EXPECT_TRUE(asked(Api::Chat, body, Engine::Sglang, TokenRoute::Tokenize)) << field;
  }
}

TEST(TokenQuestion, OfSglangIsTheRequest) {
  const auto chat =
      asked(Api::Chat,
            R"({"model":"m","messages":[1],"reasoning_effort":"low","bootstrap_room":1,)"
            R"("add_generation_prompt":false,"add_special_tokens":true})",
            Engine::Sglang, TokenRoute::Tokenize);
  ASSERT_TRUE(chat);
  EXPECT_EQ(chat->path, "/tokenize");
  EXPECT_THAT(chat->bodies,
              ElementsAre(json(R"({"model":"m","messages":[1],"reasoning_effort":"low"})")));
}

// It tokenizes as it is told, and completes as it always does.
TEST(TokenQuestion, OfSglangIsNotAskedForACompletionWithoutSpecialTokens) {
  const std::string body = R"({"model":"m","prompt":"a","add_special_tokens":false})";
  EXPECT_FALSE(asked(Api::Completions, body, Engine::Sglang, TokenRoute::Tokenize));
  EXPECT_TRUE(asked(Api::Completions, body, Engine::Vllm, TokenRoute::Tokenize));
}

TEST(TokenQuestion, IsOnlyAskedForText) {
  for (const auto& [engine, route] : {std::pair{Engine::Vllm, TokenRoute::Render},
                                      {Engine::Vllm, TokenRoute::Tokenize},
                                      {Engine::Sglang, TokenRoute::Tokenize}}) {
    const ClientRequest ids(Api::Completions, R"({"prompt":[1, 2 ,3]})");
    const auto known = token_question(ids.call, engine, route);
    ASSERT_TRUE(known);
    ASSERT_EQ(known->parts.size(), 1U);
    EXPECT_EQ(known->parts[0].body, "");
    EXPECT_THAT(known->parts[0].ids, ElementsAre(1, 2, 3));
    const auto mixed =
        asked(Api::Completions, R"({"model":"m","prompt":["a",[5]]})", engine, route);
    ASSERT_TRUE(mixed);
    EXPECT_THAT(mixed->bodies,
                ElementsAre(json(R"({"model":"m","prompt":"a"})"), nlohmann::json()));
  }
}

TEST(TokenQuestion, IsNotAskedForWhatIsNoPrompt) {
  for (const char* body : {"{}", R"({"prompt":null})", R"({"prompt":[]})", R"({"prompt":5})",
                           R"({"prompt":[1,"a"]})", R"({"prompt":[-1]})", R"({"prompt":[1.5]})",
                           R"({"prompt":[99999999999]})", R"({"prompt":[{}]})"}) {
    EXPECT_FALSE(asked(Api::Completions, body, Engine::Vllm, TokenRoute::Tokenize)) << body;
  }
  EXPECT_FALSE(asked(Api::Chat, R"({"messages":[1]})", Engine::Trtllm, TokenRoute::None));
}

TEST(TokenAnswer, IsReadInEachShape) {
  const std::pair<const char*, std::vector<TokenIds>> cases[] = {
      {R"({"count":2,"max_model_len":9,"tokens":[1,2],"token_strs":null})", {{1, 2}}},
      {R"({"tokens":[[1,2],[3]],"count":[2,1],"max_model_len":9})", {{1, 2}, {3}}},
      {R"({"request_id":"r","token_ids":[ 0 , 2147483647 ],"features":null})", {{0, 2147483647}}},
      {"\n[{\"token_ids\":[1]},{\"token_ids\":[2,3]}] \r\n", {{1}, {2, 3}}},
  };
  for (const auto& [answer, expected] : cases) {
    const auto read = read_token_ids(answer);
    ASSERT_TRUE(read) << answer << read.error().message();
    EXPECT_EQ(*read, expected) << answer;
  }
}

TEST(TokenAnswer, ThatIsNoneIsRefused) {
  for (const char* answer : {"",
                             " ",
                             "no",
                             "null",
                             "5",
                             "{}",
                             R"({"tokens":null})",
                             R"({"tokens":5})",
                             R"({"tokens":[]})",
                             R"({"tokens":["1"]})",
                             R"({"tokens":[1.0]})",
                             R"({"tokens":[1e3]})",
                             R"({"tokens":[-1]})",
                             R"({"tokens":[2147483648]})",
                             R"({"tokens":[1,null]})",
                             R"({"tokens":[[1],2]})",
                             R"({"tokens":[[1],[]]})",
                             R"({"token_ids":"x"})",
                             R"({"token_ids":[]})",
                             R"([{"token_ids":[1]},{}])",
                             R"([5])",
                             R"([[1]])",
                             R"({"tokens":[1]}})",
                             R"(1,"answer":{"tokens":[1]})",
                             R"({"tokens":[1]},"b":2)"}) {
    const auto read = read_token_ids(answer);
    ASSERT_FALSE(read) << answer;
    EXPECT_EQ(read.error().code(), Errc::EngineProtocol) << answer;
  }
}

TEST(TokenAnswer, OfMoreThanTextDoesNotHold) {
  const auto read = read_token_ids(R"({"token_ids":[1],"features":{"mm_hashes":{"image":["a"]}}})");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), Errc::EngineRejected);
}

struct AskTokens : http_client::ExchangeFixture {
  Result<std::vector<TokenIds>> ask(const FakeEngine& server, Api api, const char* body,
                                    Engine engine = Engine::Vllm,
                                    std::optional<Version> version = {}) {
    const ClientRequest request(api, body);
    model::WorkerSpec spec;
    spec.endpoint = server.endpoint();
    spec.engine = engine;
    Result<ToldTokens> told;
    run([&]() -> awaitable<void> {
      told = co_await ask_tokens(pool, cpu, {{1}, spec.endpoint}, spec, version, request.call,
                                 headers, timeouts, largest, cancellation);
    });
    if (!told) return fail(told.error());
    render_refused = told->render_refused;
    return told->prompts;
  }
  net::CpuPool cpu{1};
  wire::Headers headers;
  Cancellation cancellation;
  std::size_t largest = 1024 * 1024;
  bool render_refused = false;
};
constexpr const char* kChat = R"({"model":"m","messages":[1]})";

TEST_F(AskTokens, WhoeverHasLeftAlreadyAsksNobody) {
  const FakeEngine server(test::always(response(200, R"({"token_ids":[1,2]})")));
  cancellation.request(Error(Errc::ClientGone, "gone"));
  EXPECT_EQ(ask(server, Api::Chat, kChat).error().code(), Errc::ClientGone);
  EXPECT_EQ(server.connections(), 0U);
}

TEST_F(AskTokens, RendersWithTheClientsKey) {
  headers.add("Authorization", "Bearer k");
  headers.add("X-Other", "o");
  const FakeEngine server(
      test::by_path({{"/v1/chat/completions/render", response(200, R"({"token_ids":[1,2]})")}}));
  EXPECT_THAT(ask(server, Api::Chat, kChat).value(), ElementsAre(TokenIds{1, 2}));
  const auto asked = server.requests().at(0);
  EXPECT_THAT(asked.head, HasSubstr("POST /v1/chat/completions/render HTTP/1.1\r\n"));
  EXPECT_THAT(asked.head, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(asked.head, HasSubstr("Authorization: Bearer k\r\n"));
  EXPECT_THAT(asked.head, Not(HasSubstr("X-Other")));
  EXPECT_EQ(asked.body, kChat);
}

TEST_F(AskTokens, TokenizesWhereTheEngineDoesNotRender) {
  for (const int status : {404, 405, 403}) {
    const FakeEngine server(
        test::by_path({{"/v1/completions/render", response(status, R"({"detail":"no"})")},
                       {"/tokenize", response(200, R"({"tokens":[7]})")}}));
    EXPECT_THAT(ask(server, Api::Completions, R"({"prompt":["a",[5],"b"]})").value(),
                ElementsAre(TokenIds{7}, TokenIds{5}, TokenIds{7}));
    EXPECT_EQ(render_refused, status == 403) << "--enable-scale-out is missing";
  }
}

TEST_F(AskTokens, GoesTheRightWayAtOnceWhereTheReleaseIsKnown) {
  const FakeEngine server(test::by_path({{"/tokenize", response(200, R"({"tokens":[7]})")}}));
  EXPECT_TRUE(ask(server, Api::Chat, kChat, Engine::Vllm, Version{0, 15, 0}));
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST_F(AskTokens, SaysWhatTheEngineRefuses) {
  const FakeEngine server(test::always(response(400, R"({"error":{"message":"bad template"}})")));
  const auto refused = ask(server, Api::Chat, kChat);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::EngineRejected);
  EXPECT_EQ(refused.error().message(), "bad template");
}

TEST_F(AskTokens, TakesNoAnswerToAnotherQuestion) {
  const FakeEngine server(
      test::always(response(200, R"([{"token_ids":[1]},{"token_ids":[2]},{"token_ids":[3]}])")));
  const auto wrong = ask(server, Api::Completions, R"({"prompt":["a","b"]})");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code(), Errc::EngineProtocol);
}

TEST_F(AskTokens, HoldsAnswersToTheirLimit) {
  largest = 10;
  const FakeEngine server(test::always(response(200, R"({"token_ids":[1,2]})")));
  const auto wrong = ask(server, Api::Chat, kChat);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code(), Errc::EngineProtocol);
}

TEST_F(AskTokens, AsksNobodyWhoCannotAnswer) {
  const FakeEngine server(test::always(response(200, "{}")));
  const auto refused = ask(server, Api::Chat, kChat, Engine::Trtllm);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::EngineRejected);
  const auto unknown = ask(server, Api::Chat, R"({"messages":[1],"documents":[1]})", Engine::Vllm,
                           Version{0, 15, 0});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), Errc::EngineRejected);
  EXPECT_TRUE(server.requests().empty());
}

TEST(TokenAnswer, NamesTheIdThatCannotBe) {
  EXPECT_THAT(read_token_ids(R"({"tokens":[1,4294967295]})").error().message(),
              HasSubstr("4294967295"));
  EXPECT_THAT(read_token_ids(R"({"tokens":[-1]})").error().message(), HasSubstr("-1"));
}

}  // namespace
}  // namespace baton::engine
