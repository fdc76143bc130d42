// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/stream_continuity.h"

#include "unit/engine/client_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace baton::engine {
namespace {

using testing::HasSubstr;
using PassageKind = StreamContinuity::Passage::Kind;

struct StreamContinuityTest : testing::Test {
  void start(Api api, const std::string& body) {
    const ClientRequest request(api, body);
    stream = std::make_unique<StreamContinuity>(request.call);
  }
  StreamContinuityTest() { start(Api::Chat, R"({"stream":true})"); }

  // What the client gets of an event, without its framing.
  std::string client(const std::string& data) {
    const auto passage = stream->pass(data);
    if (passage.kind == PassageKind::AsItIs) return data;
    if (passage.kind == PassageKind::Dropped) return "";
    EXPECT_TRUE(passage.event.starts_with("data: ") && passage.event.ends_with("\n\n"))
        << passage.event;
    return passage.event.substr(6, passage.event.size() - 8);
  }
  std::string why_not() { return stream->why_not().value_or(""); }
  Progress progress() {
    EXPECT_NE(stream->progress(), nullptr);
    return stream->progress() ? *stream->progress() : Progress();
  }

  std::unique_ptr<StreamContinuity> stream;
};

constexpr const char* kRole =
    R"({"id":"c-1","object":"chat.completion.chunk","created":100,"model":"m","choices":[{"index":0,)"
    R"("delta":{"role":"assistant","content":""},"finish_reason":null}],"prompt_token_ids":[1,2, 3]})";

std::string piece(const std::string& text, const std::string& ids, const std::string& id = "c-1",
                  const std::string& created = "100") {
  return R"({"id":")" + id + R"(","created":)" + created +
         R"(,"choices":[{"index":0,"delta":{"content":")" + text +
         R"("},"finish_reason":null,"token_ids":[)" + ids + "]}]}";
}

TEST_F(StreamContinuityTest, KeepsItsOwnQuestionsFromTheClient) {
  EXPECT_EQ(
      client(kRole),
      R"({"id":"c-1","object":"chat.completion.chunk","created":100,"model":"m","choices":[{"index":0,)"
      R"("delta":{"role":"assistant","content":""},"finish_reason":null}]})");
  EXPECT_EQ(
      client(piece("hi", "7")),
      R"({"id":"c-1","created":100,"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]})");
}

TEST_F(StreamContinuityTest, LetsPassWhatNeedsNoChange) {
  for (const char* data : {"[DONE]", R"({ "choices":[] , "usage":{"prompt_tokens":5}})",
                           R"({"choices":[{"index":0}]})", "no JSON", "",
                           R"({"error":{"message":"x","token_ids":[1]}})"})
    EXPECT_EQ(stream->pass(data).kind, PassageKind::AsItIs) << data;
}

TEST_F(StreamContinuityTest, GivesTheClientTheIdsItAskedFor) {
  start(Api::Chat, R"({"stream":true,"return_token_ids":true})");
  EXPECT_EQ(stream->pass(kRole).kind, PassageKind::AsItIs);
  EXPECT_EQ(stream->pass(piece("hi", "7")).kind, PassageKind::AsItIs);
  EXPECT_EQ(progress().token_ids, "7");
}

TEST_F(StreamContinuityTest, GathersTheTokensOfAChat) {
  client(kRole);
  client(piece("a", "7"));
  client(piece("b", "8, 9"));
  EXPECT_EQ(why_not(), "");
  EXPECT_EQ(progress().prompt_token_ids, "[1,2, 3]");
  EXPECT_EQ(progress().token_ids, "7,8, 9");
  EXPECT_EQ(progress().produced, 3);
}

TEST_F(StreamContinuityTest, GathersTheTokensOfACompletion) {
  start(Api::Completions, R"({"stream":true})");
  EXPECT_EQ(
      client(
          R"({"id":"c","choices":[{"index":0,"text":"a","token_ids":[7],"prompt_token_ids":[1]}]})"),
      R"({"id":"c","choices":[{"index":0,"text":"a"}]})");
  client(
      R"({"id":"c","choices":[{"index":0,"text":"b","token_ids":[8],"prompt_token_ids":null}]})");
  EXPECT_EQ(why_not(), "");
  EXPECT_EQ(progress().prompt_token_ids, "[1]");
  EXPECT_EQ(progress().token_ids, "7,8");
}

TEST_F(StreamContinuityTest, CountsTokensOnceTheirTextIsOut) {
  client(kRole);
  client(piece("a", "7"));
  client(piece("", "8"));  // a part of a character
  client(piece("", "9"));
  EXPECT_EQ(progress().produced, 1);
  EXPECT_EQ(why_not(), "");
  client(piece("b", "10"));
  EXPECT_EQ(progress().token_ids, "7,8,9,10");
  EXPECT_EQ(progress().produced, 4);

  client(piece("", "11"));
  stream->resume();
  client(piece("c", "12", "c-2"));
  EXPECT_EQ(progress().token_ids, "7,8,9,10,12");
  EXPECT_EQ(progress().produced, 5);
}

TEST_F(StreamContinuityTest, CannotProduceAgainWhatTheClientHasSeenTheIdOf) {
  start(Api::Chat, R"({"stream":true,"return_token_ids":true})");
  client(kRole);
  client(piece("a", "7"));
  client(piece("", "8"));
  EXPECT_NE(why_not(), "");
  client(piece("b", "9"));
  EXPECT_EQ(why_not(), "");
}

TEST_F(StreamContinuityTest, SimplyBeginsAgainWhereNoTokenHasReachedTheClient) {
  EXPECT_EQ(why_not(), "");
  EXPECT_EQ(stream->progress(), nullptr);
  client(kRole);
  EXPECT_EQ(why_not(), "");
  EXPECT_EQ(stream->progress(), nullptr);
  stream->resume();
  EXPECT_EQ(client(kRole), "");
  EXPECT_THAT(client(piece("a", "7", "c-2", "200")), HasSubstr(R"("id":"c-1","created":100)"));
}

TEST_F(StreamContinuityTest, TakesTheFirstWorkersChunksAsTheyAreWhereNothingWasPassedOnBefore) {
  stream->resume();
  EXPECT_THAT(client(kRole), HasSubstr("assistant"));
  EXPECT_EQ(client(piece("a", "7")), client(piece("a", "7")));
}

TEST_F(StreamContinuityTest, MakesOneStreamOfTwo) {
  client(kRole);
  client(piece("a", "7,8"));
  stream->resume();
  EXPECT_EQ(
      client(
          R"({"id":"c-2","created":200,"choices":[{"index":0,"delta":{"role":"assistant","content":""},)"
          R"("finish_reason":null}],"prompt_token_ids":[1,2,3,7,8]})"),
      "");
  EXPECT_EQ(
      client(piece("b", "9", "c-2", "200")),
      R"({"id":"c-1","created":100,"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":null}]})");
  EXPECT_EQ(
      client(
          R"({"id":"c-2","created":200,"choices":[],"usage":{"prompt_tokens": 5,"completion_tokens":1,)"
          R"("total_tokens":6,"prompt_tokens_details":{"cached_tokens":4}}})"),
      R"({"id":"c-1","created":100,"choices":[],"usage":{"prompt_tokens": 3,"completion_tokens":3,)"
      R"("total_tokens":6,"prompt_tokens_details":{"cached_tokens":3}}})")
      << "no more is cached than the prompt has";
  EXPECT_EQ(progress().prompt_token_ids, "[1,2, 3]");
  EXPECT_EQ(progress().token_ids, "7,8,9");
  EXPECT_EQ(client("[DONE]"), "[DONE]");
}

TEST_F(StreamContinuityTest, MakesOneStreamOfThree) {
  client(kRole);
  client(piece("a", "7"));
  stream->resume();
  client(piece("b", "8", "c-2"));
  stream->resume();
  EXPECT_THAT(client(piece("c", "9", "c-3")), HasSubstr("c-1"));
  EXPECT_EQ(progress().produced, 3);
  EXPECT_THAT(
      client(
          R"({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}})"),
      HasSubstr(R"("prompt_tokens":3,"completion_tokens":3,"total_tokens":6)"));
}

TEST_F(StreamContinuityTest, DropsTheRoleAloneWhereTextComesWithIt) {
  client(kRole);
  client(piece("a", "7"));
  stream->resume();
  EXPECT_EQ(
      json(client(
          R"({"choices":[{"index":0,"delta":{"role":"assistant","content":"b"},"token_ids":[8]}]})")),
      json(R"({"choices":[{"index":0,"delta":{"content":"b"}}]})"));
}

TEST_F(StreamContinuityTest, HidesTheLongerPromptFromAClientThatAskedForIds) {
  start(Api::Completions, R"({"stream":true,"return_token_ids":true})");
  client(R"({"choices":[{"index":0,"text":"a","token_ids":[7],"prompt_token_ids":[1]}]})");
  stream->resume();
  EXPECT_EQ(
      client(R"({"choices":[{"index":0,"text":"b","token_ids":[8],"prompt_token_ids":[1,7]}]})"),
      R"({"choices":[{"index":0,"text":"b","token_ids":[8]}]})");
}

TEST_F(StreamContinuityTest, IsNotContinuedInsideAToolCallOrReasoning) {
  for (const char* delta : {R"({"tool_calls":[{"index":0}]})", R"({"reasoning_content":"hm"})",
                            R"({"reasoning":"hm"})", R"({"function_call":{"name":"f"}})"}) {
    start(Api::Chat, R"({"stream":true})");
    client(kRole);
    client(std::string(R"({"choices":[{"index":0,"token_ids":[7],"delta":)") + delta + "}]}");
    EXPECT_NE(why_not(), "") << delta;
  }
  start(Api::Chat, R"({"stream":true})");
  client(
      R"({"choices":[{"index":0,"token_ids":[7],"delta":{"content":"a","tool_calls":null,"reasoning_content":null}}]})");
  EXPECT_NE(why_not(), "") << "no prompt ids";
  client(kRole);
  EXPECT_EQ(why_not(), "");
}

TEST_F(StreamContinuityTest, IsNotContinuedWithoutItsTokenIds) {
  for (const char* ids : {"", R"(,"token_ids":null)", R"(,"token_ids":[])", R"(,"token_ids":[[7]])",
                          R"(,"token_ids":["7"])", R"(,"token_ids":[-7])", R"(,"token_ids":[7.5])",
                          R"(,"token_ids":{})", R"(,"token_ids":7)"}) {
    start(Api::Chat, R"({"stream":true})");
    client(kRole);
    client(std::string(R"({"choices":[{"index":0,"delta":{"content":"a"})") + ids + "}]}");
    EXPECT_NE(why_not(), "") << ids;
  }
}

TEST_F(StreamContinuityTest, IsNotContinuedWithSeveralChoices) {
  client(kRole);
  client(R"({"choices":[{"index":1,"delta":{"content":"a"},"token_ids":[7]}]})");
  EXPECT_NE(why_not(), "");
  start(Api::Chat, R"({"stream":true})");
  client(R"({"choices":[{"index":0,"token_ids":[1]},{"index":0,"token_ids":[1]}]})");
  EXPECT_NE(why_not(), "");
}

TEST_F(StreamContinuityTest, IsNotContinuedWhereNothingIsLeftToProduce) {
  start(Api::Completions, R"({"stream":true,"max_tokens":2})");
  client(R"({"choices":[{"index":0,"text":"a","token_ids":[7],"prompt_token_ids":[1]}]})");
  EXPECT_EQ(why_not(), "");
  client(R"({"choices":[{"index":0,"text":"b","token_ids":[8]}]})");
  EXPECT_NE(why_not(), "");
}

TEST_F(StreamContinuityTest, KeepsABoundedNumberOfIds) {
  client(kRole);
  std::string ids = "1";
  while (ids.size() < 1024 * 1024) ids += ",123456789";
  for (std::size_t i = 0; i < 9; ++i) client(piece("a", ids));
  EXPECT_NE(why_not(), "");
  EXPECT_EQ(json(client(piece("a", "7")))["choices"][0].contains("token_ids"), false);
}

TEST_F(StreamContinuityTest, CanBeClosedByItselfOnceTheLastTokenIsOut) {
  start(Api::Chat, R"({"stream":true,"stream_options":{"include_usage":true}})");
  client(kRole);
  client(piece("a", "7"));
  EXPECT_EQ(stream->closing_events(), std::nullopt);
  client(R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop","token_ids":[2]}]})");
  EXPECT_TRUE(stream->finished());
  EXPECT_NE(why_not(), "");
  const auto closing = stream->closing_events();
  ASSERT_TRUE(closing);
  EXPECT_THAT(*closing, testing::EndsWith("\n\ndata: [DONE]\n\n"));
  EXPECT_EQ(
      json(closing->substr(6, closing->find('\n') - 6)),
      json(R"({"id":"c-1","object":"chat.completion.chunk","created":100,"model":"m","choices":[],
                     "usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}})"));
  client(R"({"choices":[],"usage":{"prompt_tokens":3}})");
  EXPECT_EQ(stream->closing_events(), "data: [DONE]\n\n");
}

TEST_F(StreamContinuityTest, DoesNotCloseWithAUsageItCannotKnow) {
  start(Api::Chat, R"({"stream":true,"stream_options":{"include_usage":true}})");
  client(R"({"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]})");
  EXPECT_EQ(stream->closing_events(), std::nullopt);
  start(Api::Chat, R"({"stream":true})");
  client(R"({"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]})");
  EXPECT_EQ(stream->closing_events(), "data: [DONE]\n\n");
}

TEST_F(StreamContinuityTest, GoesOnWhereAWorkerGaveUpAsIfItHadFinished) {
  client(kRole);
  client(piece("a", "7"));
  client(R"({"choices":[{"index":0,"delta":{},"finish_reason":"abort"}]})");
  EXPECT_FALSE(stream->finished());
  EXPECT_EQ(why_not(), "");
}

TEST_F(StreamContinuityTest, SurvivesAbsurdChunks) {
  client(kRole);
  client(piece("a", "7"));
  stream->resume();
  for (
      const char* data :
      {R"({"choices":7,"usage":[]})", R"({"choices":[7]})",
       R"({"choices":[{"delta":7,"index":"x"}]})",
       R"({"usage":{"prompt_tokens":-9223372036854775808,"completion_tokens":9223372036854775807}})",
       R"({"usage":{"prompt_tokens":0,"completion_tokens":1e9}})",
       R"({"id":{"a":[1]},"created":[]})", "{}"}) {
    const std::string seen = client(data);
    EXPECT_NO_THROW(json(seen)) << seen;
  }
}

TEST_F(StreamContinuityTest, WritesOneEventForOneEvent) {
  client(kRole);
  const auto passage = stream->pass(
      "{\"choices\":[{\"index\":0,\n\"token_ids\":[7],\r\n\n\"delta\":{\"content\":\"a\"}}]\n}");
  ASSERT_EQ(passage.kind, PassageKind::Changed);
  EXPECT_EQ(passage.event.find_first_of("\r\n"), passage.event.size() - 2);
}

}  // namespace
}  // namespace baton::engine
