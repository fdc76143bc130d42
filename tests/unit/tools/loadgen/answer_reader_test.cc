// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/answer_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton::loadgen {
namespace {

using testing::ElementsAre;

wire::ResponseHead head_of(int status, std::string_view type) {
  wire::ResponseHead head;
  head.status = status;
  head.headers.add("Content-Type", type);
  return head;
}

constexpr std::string_view kCompletion =
    "data: {\"choices\":[{\"text\":\"one\",\"token_ids\":[5]}]}\n\n"
    ": still here\n\n"
    "data: {\"choices\":[{\"text\":\" "
    "t\\u0077o\",\"token_ids\":[6,7],\"finish_reason\":\"length\"}]}\n\n"
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":3,"
    "\"prompt_tokens_details\":{\"cached_tokens\":32}}}\n\n"
    "data: [DONE]\n\n";

TEST(AnswerReader, ReadsAStreamHoweverItIsCut) {
  for (std::size_t step = 1; step <= kCompletion.size(); step += step < 8 ? 1 : 37) {
    int tokens = 0;
    AnswerReader answer(Keep::Text, [&tokens] { ++tokens; });
    answer.on_head(head_of(200, "text/event-stream; charset=utf-8"));
    for (std::size_t at = 0; at < kCompletion.size(); at += step)
      answer.on_body(kCompletion.substr(at, step));
    EXPECT_EQ(tokens, 2);
    EXPECT_EQ(answer.events(), 2U);
    EXPECT_EQ(answer.text(), "one two");
    EXPECT_THAT(answer.ids(), ElementsAre(5, 6, 7));
    EXPECT_TRUE(answer.done());
    EXPECT_EQ(answer.error(), "");
    ASSERT_TRUE(answer.usage());
    EXPECT_EQ(answer.usage()->prompt_tokens, 40U);
    EXPECT_EQ(answer.usage()->completion_tokens, 3U);
    EXPECT_EQ(answer.usage()->cached_tokens, 32U);
  }
}

TEST(AnswerReader, CountsOfAChatOnlyEventsThatSaySomething) {
  int tokens = 0;
  AnswerReader answer(Keep::Text, [&tokens] { ++tokens; });
  answer.on_head(head_of(200, "text/event-stream"));
  answer.on_body("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n");
  EXPECT_EQ(tokens, 0);
  answer.on_body("data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n");
  answer.on_body("data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}],\"usage\":null}\n\n");
  answer.on_body("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
  EXPECT_EQ(tokens, 2);
  EXPECT_EQ(answer.text(), "hi");
  EXPECT_FALSE(answer.usage());
  EXPECT_FALSE(answer.done());
}

TEST(AnswerReader, KeepsNothingWhereNothingIsWanted) {
  AnswerReader answer(Keep::Nothing, [] {});
  answer.on_head(head_of(200, "text/event-stream"));
  answer.on_body(kCompletion);
  EXPECT_EQ(answer.text(), "");
  EXPECT_TRUE(answer.ids().empty());
  EXPECT_EQ(answer.events(), 2U);
}

TEST(AnswerReader, NamesAnErrorByItsStatusAndCode) {
  AnswerReader answer(Keep::Nothing, [] {});
  wire::ResponseHead head = head_of(429, "application/json");
  head.headers.add("Retry-After", "3");
  answer.on_head(head);
  EXPECT_EQ(answer.error(), "http_429");
  answer.on_body(R"({"error":{"mess)");
  answer.on_body(R"(age":"busy","type":"x","code":"engine_overloaded"}})");
  EXPECT_EQ(answer.status(), 429);
  EXPECT_EQ(answer.retry_after(), std::chrono::seconds(3));
  EXPECT_EQ(answer.error(), "http_429 engine_overloaded");
}

TEST(AnswerReader, FindsAnErrorInTheStream) {
  AnswerReader answer(Keep::Nothing, [] {});
  answer.on_head(head_of(200, "text/event-stream"));
  answer.on_body("data: {\"error\":{\"message\":\"gone\",\"code\":\"stream_broken\"}}\n\n");
  EXPECT_EQ(answer.error(), "stream_broken");
}

TEST(AnswerReader, TellsWhatIsNoStreamOfEvents) {
  AnswerReader whole(Keep::Nothing, [] {});
  whole.on_head(head_of(200, "application/json"));
  whole.on_body("{}");
  EXPECT_EQ(whole.error(), "not_a_stream");
  AnswerReader nonsense(Keep::Nothing, [] {});
  nonsense.on_head(head_of(200, "text/event-stream"));
  nonsense.on_body("data: nonsense\n\n");
  EXPECT_EQ(nonsense.error(), "bad_event");
}

TEST(AnswerReader, KnowsTheWorkersThatServed) {
  AnswerReader answer(Keep::Nothing, [] {});
  wire::ResponseHead head = head_of(200, "text/event-stream");
  head.headers.add("x-baton-prefill-worker", "p-1");
  head.headers.add("x-baton-decode-worker", std::string(1000, 'd'));
  answer.on_head(head);
  EXPECT_EQ(answer.prefill_worker(), "p-1");
  EXPECT_EQ(answer.decode_worker(), std::string(128, 'd'));
}

// What an answer is found to be, from a head and its bytes.
struct Found {
  std::uint64_t events;
  std::string error;
  bool done;
};

Found found_in(std::string_view bytes, int status = 200,
               std::string_view type = "text/event-stream") {
  AnswerReader answer(Keep::Text, [] {});
  answer.on_head(head_of(status, type));
  answer.on_body(bytes);
  return {answer.events(), answer.error(), answer.done()};
}

TEST(AnswerReader, ACutAnswerIsNeverDoneAndHasNoMoreThanCame) {
  const std::size_t first_end = kCompletion.find("\n\n") + 2;
  const std::size_t second_end = kCompletion.find("\n\n", kCompletion.find("t\\u0077o")) + 2;
  for (std::size_t size = 0; size < kCompletion.size(); ++size) {
    const Found found = found_in(kCompletion.substr(0, size));
    EXPECT_FALSE(found.done) << size;
    EXPECT_EQ(found.error, "") << size;  // what is missing is no mistake of what came
    EXPECT_EQ(found.events, (size >= first_end ? 1U : 0U) + (size >= second_end ? 1U : 0U)) << size;
  }
}

TEST(AnswerReader, TakesEveryLineEndOfServerSentEvents) {
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    std::string text;
    for (const char c : kCompletion) text += c == '\n' ? end : std::string(1, c);
    const Found found = found_in(text);
    EXPECT_EQ(found.events, 2U);
    EXPECT_TRUE(found.done);
  }
}

TEST(AnswerReader, NamesEachErrorByWhatTheEndpointCallsIt) {
  struct Case {
    std::string_view body;
    std::string_view error;
  };
  for (const auto& [body, error] :
       {Case{R"({"error":{"code":"a","type":"b"}})", "http_503 a"},
        Case{R"({"error":{"code":null,"type":"b"}})", "http_503 b"},
        Case{R"({"error":{"code":503}})", "http_503 503"},
        Case{R"({"object":"error","type":"BadRequestError","code":400})", "http_503 400"},
        Case{R"({"detail":"x"})", "http_503"}, Case{"{", "http_503"}, Case{"", "http_503"},
        Case{"[]", "http_503"}, Case{"<html>", "http_503"}}) {
    EXPECT_EQ(found_in(body, 503, "application/json").error, error) << body;
  }
}

TEST(AnswerReader, AnErrorInTheStreamIsNamedTheSameWay) {
  struct Case {
    std::string_view event;
    std::string_view error;
  };
  for (const auto& [event, error] :
       {Case{R"({"error":{"code":"a","type":"b"}})", "a"}, Case{R"({"error":{"type":"b"}})", "b"},
        Case{R"({"error":"text"})", "error_event"}, Case{R"({"error":{}})", "error_event"},
        Case{R"({"error":null,"choices":[{"text":"x"}]})", ""}, Case{"{\"a\":", "bad_event"},
        Case{"[]", "bad_event"}}) {
    EXPECT_EQ(found_in(std::string("data: ") + std::string(event) + "\n\n").error, error) << event;
  }
}

TEST(AnswerReader, AnErrorStaysThoughTheStreamSaysThatItIsDone) {
  const Found found = found_in("data: {\"error\":{\"code\":\"gone\"}}\n\ndata: [DONE]\n\n");
  EXPECT_EQ(found.error, "gone");
  EXPECT_TRUE(found.done);
}

TEST(AnswerReader, OnlyASuccessWithEventsIsAStream) {
  EXPECT_EQ(found_in("data: [DONE]\n\n", 200, "text/plain").error, "not_a_stream");
  EXPECT_EQ(found_in("data: [DONE]\n\n", 200, "").error, "not_a_stream");
  EXPECT_EQ(found_in("data: [DONE]\n\n", 201, "text/event-stream").error, "http_201");
  EXPECT_FALSE(found_in("data: [DONE]\n\n", 500, "text/event-stream").done);
}

TEST(AnswerReader, CountsEventsThatBringSomething) {
  struct Case {
    std::string_view choice;
    std::uint64_t events;
  };
  for (const auto& [choice, events] :
       {Case{R"({"text":"a"})", 1}, Case{R"({"text":""})", 0}, Case{R"({"text":null})", 0},
        Case{R"({"delta":{"content":"a"}})", 1}, Case{R"({"delta":{"content":null}})", 0},
        Case{R"({"delta":{"reasoning":"a"}})", 1}, Case{R"({"reasoning_content":"a"})", 1},
        Case{R"({"delta":{"tool_calls":[{}]}})", 1}, Case{R"({"delta":{"tool_calls":null}})", 0},
        Case{R"({"finish_reason":"stop"})", 0}, Case{"7", 0}, Case{R"({"delta":7})", 0}}) {
    const std::string event = fmt::format("data: {{\"choices\":[{}]}}\n\n", choice);
    EXPECT_EQ(found_in(event).events, events) << choice;
    EXPECT_EQ(found_in(event).error, "") << choice;
  }
  EXPECT_EQ(found_in("data: {\"choices\":[]}\n\n").events, 0U);
  EXPECT_EQ(found_in("data: {\"choices\":null}\n\n").events, 0U);
  EXPECT_EQ(found_in("data: {}\n\n").events, 0U);
}

TEST(AnswerReader, UsageIsTheLastThatWasTold) {
  const auto usage_in = [](std::string_view usage) {
    AnswerReader answer(Keep::Nothing, [] {});
    answer.on_head(head_of(200, "text/event-stream"));
    answer.on_body("data: {\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n");
    answer.on_body(fmt::format("data: {{\"usage\":{}}}\n\n", usage));
    return *answer.usage();
  };
  EXPECT_EQ(usage_in(R"({"prompt_tokens":7,"completion_tokens":8})").completion_tokens, 8U);
  EXPECT_EQ(usage_in(R"({"prompt_tokens":7})").completion_tokens, 0U);
  EXPECT_EQ(usage_in(R"({"prompt_tokens":-7})").prompt_tokens, 0U);
  EXPECT_EQ(usage_in("null").prompt_tokens, 1U);
  EXPECT_EQ(usage_in(R"({"prompt_tokens_details":{"cached_tokens":0}})").cached_tokens, 0U);
  EXPECT_EQ(usage_in(R"({"prompt_tokens_details":{}})").cached_tokens, std::nullopt);
  EXPECT_EQ(usage_in(R"({"prompt_tokens_details":null})").cached_tokens, std::nullopt);
}

TEST(AnswerReader, RetryAfterIsANumberOfSeconds) {
  const auto retry_after = [](std::string_view text) {
    AnswerReader answer(Keep::Nothing, [] {});
    wire::ResponseHead head = head_of(503, "application/json");
    head.headers.add("retry-after", text);
    answer.on_head(head);
    return answer.retry_after();
  };
  EXPECT_EQ(retry_after("0"), std::chrono::seconds(0));
  EXPECT_EQ(retry_after("120"), std::chrono::seconds(120));
  for (const char* text :
       {"", "-1", "1.5", "soon", "Fri, 31 Dec 1999 23:59:59 GMT", "99999999999"}) {
    EXPECT_EQ(retry_after(text), std::nullopt) << text;
  }
}

TEST(AnswerReader, AnErrorAnswerIsHeldToAFewKibibytes) {
  AnswerReader answer(Keep::Nothing, [] {});
  answer.on_head(head_of(500, "application/json"));
  answer.on_body(R"({"error":{"message":")");
  for (int i = 0; i < 1000; ++i) answer.on_body(std::string(100, 'x'));
  answer.on_body(R"(","code":"late"}})");
  EXPECT_EQ(answer.error(), "http_500");  // its code stood behind what is read
}

TEST(AnswerReader, AnEventWithoutAnEndIsGivenUp) {
  AnswerReader answer(Keep::Nothing, [] {});
  answer.on_head(head_of(200, "text/event-stream"));
  const std::string part(64 * 1024, 'x');
  answer.on_body("data: ");
  for (int i = 0; i < 20; ++i) answer.on_body(part);
  EXPECT_EQ(answer.error(), "event_too_large");
}

}  // namespace
}  // namespace baton::loadgen
