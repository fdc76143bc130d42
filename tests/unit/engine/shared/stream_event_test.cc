// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/stream_event.h"

#include <gtest/gtest.h>

#include <string>

namespace baton::engine {
namespace {

using Kind = StreamEvent::Kind;

TEST(StreamEvent, KnowsWhatAnEventIs) {
  const struct {
    const char* data;
    Kind kind;
    bool token;
    bool finish;
  } cases[] = {
      {"[DONE]", Kind::Done, false, false},
      {R"({"choices":[{"delta":{"content":"x"},"finish_reason":null}]})", Kind::Chunk, true, false},
      {R"({"choices":[{"delta":{"content":"x"}}]})", Kind::Chunk, true, false},
      {R"({"choices":[{"delta":{},"finish_reason":"stop"}]})", Kind::Chunk, true, true},
      {R"({"choices":[{"text":"a"},{"finish_reason":"length"}]})", Kind::Chunk, true, true},
      {R"({"choices":[{"delta":{},"finish_reason":"abort"}]})", Kind::Aborted, true, true},
      {R"({"big":123456789012345678901,"choices":[{"finish_reason":"error"}]})", Kind::Aborted,
       true, true},
      {R"({"choices":[]})", Kind::Chunk, false, false},
      {R"({"choices":null})", Kind::Chunk, false, false},
      {R"({})", Kind::Chunk, false, false},
      {R"({"error":null,"choices":[{}]})", Kind::Chunk, false, false},
      {R"({"error":{"message":"m"}})", Kind::Error, false, false},
      {R"({"error":"m"})", Kind::Error, false, false},
      {R"({"choices":[{"text":"\"error\":1"}]})", Kind::Chunk, true, false},
      {R"({"choices":[1,"x"]})", Kind::Chunk, false, false},
      {R"( {"choices" : [ { } ] } )", Kind::Chunk, false, false},
      {"[DONE] ", Kind::Malformed, false, false},
      {"{", Kind::Malformed, false, false},
      {R"({"choices":[{"text":"cut)", Kind::Malformed, false, false},
      {R"({"a":1}{"b":2})", Kind::Malformed, false, false},
      {"[]", Kind::Malformed, false, false},
      {"1", Kind::Malformed, false, false},
      {"null", Kind::Malformed, false, false},
      {"{\"a\":\"\xff\"}", Kind::Malformed, false, false},
      {"{\"a\":01}", Kind::Malformed, false, false},
      {"{\"a\":\"\n\"}", Kind::Malformed, false, false},
  };
  for (const auto& c : cases) {
    const StreamEvent event = read_stream_event(c.data);
    EXPECT_EQ(event.kind, c.kind) << c.data;
    if (event.kind != Kind::Chunk) continue;
    EXPECT_EQ(event.has_token, c.token) << c.data;
    EXPECT_EQ(event.has_finish, c.finish) << c.data;
  }
}

TEST(StreamEvent, TellsATokenFromAnEventThatOnlySaysThatTheWorkerIsThere) {
  for (const char* token : {
           R"({"delta":{"content":"x"}})",
           R"({"delta":{"role":"assistant","content":" "}})",
           R"({"delta":{"reasoning_content":"x"}})",
           R"({"delta":{"reasoning":"x"}})",
           R"({"delta":{"refusal":"x"}})",
           R"({"delta":{"tool_calls":[{"index":0,"function":{"arguments":""}}]}})",
           R"({"delta":{"function_call":{"name":"f"}}})",
           R"({"text":"x"})",
           R"({"text":"","token_ids":[7]})",
           R"({"text":"","logprobs":{"content":[]}})",
           R"({"delta":{"content":""},"finish_reason":"stop"})",
           R"({"delta":{}},{"delta":{"content":"x"}})",
       }) {
    EXPECT_TRUE(read_stream_event(std::string(R"({"choices":[)") + token + "]}").has_token)
        << token;
  }
  for (const char* none : {
           R"({"delta":{}})",
           R"({"delta":null})",
           R"({"delta":"x"})",
           R"({"delta":{"role":"assistant"}})",
           R"({"delta":{"role":"assistant","content":""}})",
           R"({"delta":{"content":null,"reasoning_content":null,"tool_calls":[]}})",
           R"({"delta":{"content":""},"logprobs":null,"finish_reason":null,"token_ids":null})",
           R"({"text":""})",
           R"({"text":"","token_ids":[],"logprobs":{},"finish_reason":null})",
           R"({"index":0,"prompt_token_ids":[1,2,3],"stop_reason":null})",
           R"({"delta":{}},{"text":""})",
       }) {
    EXPECT_FALSE(read_stream_event(std::string(R"({"choices":[)") + none + "]}").has_token) << none;
  }
}

TEST(StreamEvent, TakesNumbersOfAnySize) {
  const StreamEvent event = read_stream_event(
      R"({"seed":123456789012345678901234567890,"choices":[{"finish_reason":"stop"}],)"
      R"("usage":{"prompt_tokens":5,"completion_tokens":6}})");
  EXPECT_EQ(event.kind, Kind::Chunk);
  EXPECT_TRUE(event.has_token);
  EXPECT_TRUE(event.has_finish);
  ASSERT_TRUE(event.usage);
  EXPECT_EQ(event.usage->completion_tokens, 6);
  EXPECT_EQ(read_stream_event(R"({"error":{"at":123456789012345678901234567890}})").kind,
            Kind::Error);
}

TEST(StreamEvent, ReadsTheUsage) {
  const StreamEvent event =
      read_stream_event(R"({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6,)"
                        R"("prompt_tokens_details":{"cached_tokens":4}}})");
  ASSERT_TRUE(event.usage);
  EXPECT_EQ(event.usage->prompt_tokens, 5);
  EXPECT_EQ(event.usage->completion_tokens, 6);
  EXPECT_EQ(event.usage->cached_tokens, 4);
  EXPECT_FALSE(event.has_token);

  EXPECT_FALSE(read_stream_event(R"({"usage":null})").usage);
  const StreamEvent bare = read_stream_event(R"({"usage":{"prompt_tokens_details":null}})");
  ASSERT_TRUE(bare.usage);
  EXPECT_FALSE(bare.usage->cached_tokens);
}

// Around the size from which events are read with memory of their own.
TEST(StreamEvent, ReadsEventsOfEverySize) {
  const std::string start = R"({"choices":[{"finish_reason":"stop","text":")";
  const std::string end = R"("}]})";
  for (const std::size_t size : {1000U, 65'535U, 65'536U, 65'537U, 300'000U}) {
    const std::string data = start + std::string(size - start.size() - end.size(), 'x') + end;
    const StreamEvent event = read_stream_event(data);
    EXPECT_EQ(event.kind, Kind::Chunk) << size;
    EXPECT_TRUE(event.has_finish) << size;
    EXPECT_EQ(read_stream_event(data.substr(0, size - 1)).kind, Kind::Malformed) << size;
  }
}

TEST(StreamEvent, TakesNestingAsDeepAsAnyoneNeedsAndNoMore) {
  const auto nested = [](std::size_t depth) {
    return R"({"x":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_EQ(read_stream_event(nested(500)).kind, Kind::Chunk);
  EXPECT_EQ(read_stream_event(nested(100'000)).kind, Kind::Malformed);
}

}  // namespace
}  // namespace baton::engine
