// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/completion_json.h"

#include "engine/shared/stream_event.h"
#include "unit/engine/client_request.h"
#include "wire/sse_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace baton::engine {
namespace {

using testing::IsEmpty;

// The stream's events, read as a client would; each must be sound.
std::vector<nlohmann::json> events_of(const std::string& stream) {
  std::vector<nlohmann::json> events;
  wire::SseReader reader;
  reader.feed(stream);
  bool done = false;
  while (const auto event = reader.next()) {
    EXPECT_FALSE(done) << "something follows [DONE]";
    const auto kind = read_stream_event(event->data).kind;
    if (kind == StreamEvent::Kind::Done) {
      done = true;
    } else {
      EXPECT_EQ(kind, StreamEvent::Kind::Chunk) << event->data;
      events.push_back(nlohmann::json::parse(event->data));
    }
  }
  EXPECT_TRUE(done) << "[DONE] is missing";
  EXPECT_EQ(reader.held(), 0U);
  return events;
}

std::vector<nlohmann::json> events_of(Api api, const std::string& completion,
                                      IncludeUsage usage = IncludeUsage::No) {
  const auto stream = as_event_stream(api, completion, usage);
  EXPECT_TRUE(stream) << (stream ? "" : stream.error().message());
  return stream ? events_of(*stream) : std::vector<nlohmann::json>();
}

constexpr const char* kChatCompletion =
    R"({"id":"chatcmpl-1","object":"chat.completion","created":17,"model":"m",)"
    R"("system_fingerprint":"fp","choices":[{"index":0,"message":{"role":"assistant",)"
    R"("content":"Hi ☃"},"logprobs":null,"finish_reason":"stop","stop_reason":128009}],)"
    R"("usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}})";

TEST(EventStream, GivesAChatAnswerAsOneDeltaAndItsEnd) {
  const auto events = events_of(Api::Chat, kChatCompletion);
  ASSERT_EQ(events.size(), 2U);
  for (const auto& event : events) {
    EXPECT_EQ(event["id"], "chatcmpl-1");
    EXPECT_EQ(event["object"], "chat.completion.chunk");
    EXPECT_EQ(event["created"], 17);
    EXPECT_EQ(event["model"], "m");
    EXPECT_EQ(event["system_fingerprint"], "fp");
    EXPECT_FALSE(event.contains("usage"));
    EXPECT_FALSE(event["choices"][0].contains("message"));
    EXPECT_EQ(event["choices"][0]["index"], 0);
  }
  EXPECT_EQ(events[0]["choices"][0]["delta"], json(R"({"role":"assistant","content":"Hi ☃"})"));
  EXPECT_TRUE(events[0]["choices"][0]["finish_reason"].is_null());
  EXPECT_THAT(events[1]["choices"][0]["delta"], IsEmpty());
  EXPECT_EQ(events[1]["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(events[1]["choices"][0]["stop_reason"], 128009);
}

TEST(EventStream, EndsWithTheUsageWhereItIsWanted) {
  const auto events = events_of(Api::Chat, kChatCompletion, IncludeUsage::Yes);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_THAT(events[2]["choices"], IsEmpty());
  EXPECT_EQ(events[2]["usage"],
            json(R"({"prompt_tokens":3,"completion_tokens":1,"total_tokens":4})"));
}

TEST(EventStream, LeavesOutWhatIsNullInTheUsage) {
  const auto events = events_of(
      Api::Completions,
      R"({"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens_details":null,)"
      R"("prompt_tokens_details":{"cached_tokens":0,"multimodal_tokens":null}}})",
      IncludeUsage::Yes);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[2]["usage"],
            json(R"({"prompt_tokens":3,"prompt_tokens_details":{"cached_tokens":0}})"));
}

TEST(EventStream, HasNoUsageEventWhereTheEngineGaveNone) {
  const auto events =
      events_of(Api::Completions, R"({"choices":[{"finish_reason":"stop"}]})", IncludeUsage::Yes);
  EXPECT_EQ(events.size(), 2U);
}

TEST(EventStream, NumbersToolCalls) {
  const auto events = events_of(
      Api::Chat,
      R"({"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[)"
      R"({"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},)"
      R"({"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]},)"
      R"("finish_reason":"tool_calls"}]})");
  ASSERT_EQ(events.size(), 2U);
  const auto& calls = events[0]["choices"][0]["delta"]["tool_calls"];
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0]["index"], 0);
  EXPECT_EQ(calls[0]["function"]["arguments"], R"({"x":1})");
  EXPECT_EQ(calls[1]["index"], 1);
  EXPECT_EQ(calls[1]["id"], "b");
  EXPECT_EQ(events[1]["choices"][0]["finish_reason"], "tool_calls");
}

TEST(EventStream, GivesATextAnswerAsTextAndItsEnd) {
  const auto events =
      events_of(Api::Completions,
                R"({"id":"cmpl-1","object":"text_completion","choices":[{"index":0,"text":"abc",)"
                R"("logprobs":{"tokens":["abc"]},"finish_reason":"stop"}]})");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0]["object"], "text_completion");
  EXPECT_EQ(events[0]["choices"][0]["text"], "abc");
  EXPECT_EQ(events[0]["choices"][0]["logprobs"], json(R"({"tokens":["abc"]})"));
  EXPECT_TRUE(events[0]["choices"][0]["finish_reason"].is_null());
  EXPECT_EQ(events[1]["choices"][0]["text"], "");
  EXPECT_EQ(events[1]["choices"][0]["finish_reason"], "stop");
}

TEST(EventStream, KeepsEveryChoice) {
  const auto events =
      events_of(Api::Completions, R"({"choices":[{"index":0,"text":"a","finish_reason":"stop"},)"
                                  R"({"index":1,"text":"b","finish_reason":"stop"}]})");
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[2]["choices"][0]["index"], 1);
  EXPECT_EQ(events[2]["choices"][0]["text"], "b");
}

TEST(EventStream, CannotBeMadeOfMoreChoicesThanARequestMayHave) {
  std::string choices = R"({"choices":[{"finish_reason":"stop"})";
  for (int i = 0; i < 128; ++i) choices += R"(,{"finish_reason":"stop"})";
  EXPECT_FALSE(as_event_stream(Api::Chat, choices + "]}", IncludeUsage::No));
}

TEST(EventStream, KeepsEachOfManyMembers) {
  std::string message = R"({"choices":[{"finish_reason":"stop","message":{"m":0)";
  for (int i = 0; i < 20'000; ++i) message += fmt::format(R"(,"m{}":{})", i, i);
  const auto events = events_of(Api::Chat, message + "}}]}", IncludeUsage::No);
  EXPECT_EQ(events.at(0)["choices"][0]["delta"]["m19999"], 19'999);
}

TEST(EventStream, CannotBeMadeFromWhatIsNoCompletion) {
  for (const char* text :
       {"", "{", "[]", R"({"choices":1})", R"({"choices":[1]})", R"({"choices":[{"index":"x"}]})",
        R"({"choices":[{"message":"text"}]})", R"({"choices":[{"message":{"tool_calls":[1]}}]})"}) {
    const auto stream = as_event_stream(Api::Chat, text, IncludeUsage::Yes);
    ASSERT_FALSE(stream) << text << " became " << *stream;
    EXPECT_EQ(stream.error().code(), Errc::EngineProtocol) << text;
  }
}

std::optional<Usage> usage(const std::string& text) {
  return usage_of(wire::JsonObject::parse(text).value());
}

TEST(Usage, IsReadWhereItIs) {
  const auto full = usage(
      R"({"usage":{"prompt_tokens":9000000000,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":8}}})");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->prompt_tokens, 9'000'000'000);
  EXPECT_EQ(full->completion_tokens, 2);
  EXPECT_EQ(full->cached_tokens, 8);

  const auto bare = usage(R"({"usage":{"prompt_tokens_details":null,"prompt_tokens":"x"}})");
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->prompt_tokens, 0);
  EXPECT_EQ(bare->cached_tokens, std::nullopt);
}

TEST(Usage, IsNoneWhereThereIsNone) {
  for (const char* text : {"{}", R"({"usage":null})", R"({"usage":[]})", R"({"usage":7})"}) {
    EXPECT_FALSE(usage(text)) << text;
  }
}

TEST(FinishReason, IsThatOfTheFirstChoice) {
  const auto reason = [](const std::string& text) {
    return finish_reason_of(wire::JsonObject::parse(text).value());
  };
  EXPECT_EQ(reason(R"({"choices":[{"finish_reason":"stop"},{"finish_reason":"length"}]})").value(),
            "stop");
  for (const char* text : {"{}", R"({"choices":[]})", R"({"choices":[null]})",
                           R"({"choices":[{"finish_reason":null},{"finish_reason":"stop"}]})"}) {
    const auto none = reason(text);
    ASSERT_FALSE(none) << text;
    EXPECT_EQ(none.error().code(), Errc::EngineProtocol) << text;
  }
}

TEST(AsEvent, IsOneEventWhateverTheJsonLooksLike) {
  EXPECT_EQ(as_event(R"({"a":"x\n"})"), "data: {\"a\":\"x\\n\"}\n\n");
  EXPECT_EQ(as_event("{\r\n\"a\":1\n\n}"), "data: {  \"a\":1  }\n\n");
}

}  // namespace
}  // namespace baton::engine
