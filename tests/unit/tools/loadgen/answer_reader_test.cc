// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/answer_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace baton::loadgen
