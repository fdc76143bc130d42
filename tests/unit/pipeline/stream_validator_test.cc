// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/stream_validator.h"

#include "engine/shared/client_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

namespace baton::pipeline {
namespace {

using testing::HasSubstr;

const std::string kTextToken = "data: {\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n\n";
const std::string kTextFinish =
    "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\n";
const std::string kDoneEvent = "data: [DONE]\n\n";

std::string usage_event(int cached) {
  return "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,"
         "\"prompt_tokens_details\":{\"cached_tokens\":" +
         std::to_string(cached) + "}}}\n\n";
}

struct StreamValidatorTest : testing::Test {
  StreamValidator& validator() {
    if (!made) made.emplace(record, metrics, nullptr);
    return *made;
  }
  void with_continuity(const std::string& request) {
    body = engine::ClientBody::parse(request).value();
    const engine::ClientCall call{.api = engine::Api::Completions, .body = body->object()};
    made.emplace(record, metrics, std::make_unique<engine::StreamContinuity>(call));
  }
  // What goes on of the next piece of the stream.
  std::string feed(const std::string& piece) {
    last = std::make_unique<std::string>(piece);
    reader.feed(*last);
    return take();
  }
  std::string take() {
    std::string all;
    for (int i = 0; i < 100; ++i) {
      const std::string_view bytes = validator().take(reader, *last);
      if (bytes.empty()) break;
      all += bytes;
    }
    return all;
  }

  telemetry::Registry registry;
  ModelMetrics metrics{registry, "m"};
  RequestRecord record;
  wire::SseReader reader;
  std::unique_ptr<std::string> last;
  std::shared_ptr<const engine::ClientBody> body;
  std::optional<StreamValidator> made;
};

TEST_F(StreamValidatorTest, TellsProgressFromSignsOfLife) {
  for (const std::string& sign :
       {std::string(": ping\n\n"), std::string("data:\n\n"),
        std::string("data: {\"choices\":[]}\n\n"),
        std::string(
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":0}}\n\n"),
        std::string(
            "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n")}) {
    EXPECT_EQ(feed(sign), sign);
    EXPECT_FALSE(validator().progressed()) << sign;
  }
  EXPECT_TRUE(validator().begun());
  EXPECT_EQ(record.events, 0U);
  for (const std::string& token : {kTextToken, kTextFinish, usage_event(3)}) {
    feed(token);
    EXPECT_TRUE(validator().progressed()) << token;
    EXPECT_FALSE(validator().progressed()) << "told once";
  }
}

TEST_F(StreamValidatorTest, PassesSoundEventsOnByteForByteInOnePiece) {
  const std::string events =
      ": hi\n\n" + kTextToken + kTextToken + kTextFinish + usage_event(3) + kDoneEvent;
  reader.feed(events);
  EXPECT_EQ(validator().take(reader, events), events);
  EXPECT_TRUE(validator().done());
  EXPECT_FALSE(validator().failure());
  EXPECT_EQ(record.events, 3U);
  ASSERT_TRUE(record.usage);
  EXPECT_EQ(record.usage->cached_tokens, 3);
}

TEST_F(StreamValidatorTest, GivesTheSameWhereverTheBytesAreCut) {
  const std::string events = kTextToken + kTextFinish + usage_event(1) + kDoneEvent;
  for (std::size_t cut = 1; cut < events.size(); ++cut) {
    made.reset();
    reader = wire::SseReader();
    std::string all = feed(events.substr(0, cut));
    EXPECT_EQ(events.substr(0, all.size()), all) << cut;
    all += feed(events.substr(cut));
    ASSERT_EQ(all, events) << cut;
    ASSERT_TRUE(validator().done()) << cut;
  }
}

TEST_F(StreamValidatorTest, StopsAtTheFirstEventThatIsNotSound) {
  const struct {
    std::string event;
    Errc code;
  } cases[] = {
      {"data: {\"choices\":\n\n", Errc::EngineProtocol},
      {"data: {\"error\":{\"message\":\"out of memory\"}}\n\n", Errc::EngineFailed},
      {"data: {\"choices\":[{\"finish_reason\":\"abort\"}]}\n\n", Errc::EngineFailed},
      {kDoneEvent, Errc::EngineFailed},
  };
  for (const auto& c : cases) {
    made.reset();
    reader = wire::SseReader();
    EXPECT_EQ(feed(kTextToken + c.event + kTextFinish + kDoneEvent), kTextToken) << c.event;
    ASSERT_TRUE(validator().failure()) << c.event;
    EXPECT_EQ(validator().failure()->code(), c.code) << c.event;
    EXPECT_EQ(take(), "") << c.event;
    EXPECT_FALSE(validator().done());
  }
}

TEST_F(StreamValidatorTest, KeepsTheEnginesWords) {
  feed("data: {\"error\":{\"message\":\"out of memory\"}}\n\n");
  EXPECT_EQ(validator().failure()->message(), "out of memory");
  EXPECT_FALSE(validator().begun());
}

TEST_F(StreamValidatorTest, TakesARefusalBeforeTheFirstTokenForTheClientsFault) {
  const std::string refusal = "data: {\"error\":{\"message\":\"bad regex\",\"code\":400}}\n\n";
  feed(": wait\n\n" + refusal);
  EXPECT_EQ(validator().failure()->code(), Errc::EngineRejected);
  EXPECT_EQ(validator().failure()->http_status(), 400);
  made.reset();
  reader = wire::SseReader();
  feed(kTextToken + refusal);
  EXPECT_EQ(validator().failure()->code(), Errc::EngineFailed);
}

TEST_F(StreamValidatorTest, HasNotBegunByAComment) {
  EXPECT_EQ(feed(": wait\n\n"), ": wait\n\n");
  EXPECT_FALSE(validator().begun()) << "no token was taken";
  feed(kTextToken);
  EXPECT_TRUE(validator().begun());
}

TEST_F(StreamValidatorTest, TakesNothingBehindTheEnd) {
  EXPECT_EQ(feed(kTextToken + kTextFinish + kDoneEvent + kTextToken),
            kTextToken + kTextFinish + kDoneEvent);
}

TEST_F(StreamValidatorTest, HoldsUsageBackUntilThePrefillHasAnswered) {
  validator().expect_prefill(true);
  EXPECT_EQ(feed(kTextToken + kTextFinish + usage_event(9) + kDoneEvent), kTextToken + kTextFinish);
  EXPECT_TRUE(validator().waits_for_prefill());
  EXPECT_EQ(take(), "") << "and all behind it";
  engine::PrefillOutcome prefill;
  prefill.usage = engine::Usage{.prompt_tokens = 9,
                                .completion_tokens = 1,
                                .cached_tokens = 4,
                                .prompt_details = R"({"cached_tokens":4})"};
  validator().set_prefill(std::make_shared<const engine::PrefillOutcome>(prefill));
  EXPECT_EQ(take(), usage_event(4) + kDoneEvent);
  EXPECT_FALSE(validator().waits_for_prefill());
  EXPECT_TRUE(validator().done());
  EXPECT_EQ(record.usage->cached_tokens, 4);
  EXPECT_EQ(record.usage->completion_tokens, 2);
}

TEST_F(StreamValidatorTest, PutsThePromptsLogprobsIntoTheFirstEvent) {
  const auto token = [](const std::string& entries) {
    return "data: {\"choices\":[{\"index\":0,\"text\":\"a\",\"logprobs\":{\"tokens\":[" + entries +
           "]}}]}\n\n";
  };
  validator().expect_prefill(true);
  validator().expect_input_logprobs();
  EXPECT_EQ(feed(token("\"c\"") + token("\"d\"")), "");
  EXPECT_TRUE(validator().waits_for_prefill());
  engine::PrefillOutcome prefill;
  prefill.input_logprobs = R"({"tokens":["a","b"]})";
  validator().set_prefill(std::make_shared<const engine::PrefillOutcome>(prefill));
  EXPECT_EQ(take(), token("\"a\",\"b\",\"c\"") + token("\"d\""));
}

TEST_F(StreamValidatorTest, NeverTakesTheDecodesWordForWhatWasCached) {
  validator().expect_prefill(true);
  const engine::PrefillOutcome unknown;
  feed(kTextToken + usage_event(9));
  validator().set_prefill(std::make_shared<const engine::PrefillOutcome>(unknown));
  EXPECT_NE(take(), usage_event(9)) << "to the decode worker all of the prompt was there";
  EXPECT_FALSE(record.usage->cached_tokens);
}

TEST_F(StreamValidatorTest, NeedsNoPrefillWhereOneWorkerServes) {
  validator().expect_prefill(false);
  EXPECT_EQ(feed(kTextToken + usage_event(9)), kTextToken + usage_event(9));
}

TEST_F(StreamValidatorTest, BeginsAnewAfterAFailure) {
  feed(kTextToken + "data: {\n\n");
  ASSERT_TRUE(validator().failure());
  validator().restart();
  reader = wire::SseReader();
  EXPECT_FALSE(validator().failure());
  EXPECT_FALSE(validator().begun());
  EXPECT_EQ(feed(kDoneEvent), "");
  EXPECT_TRUE(validator().failure()) << "the finish must be of the new stream";
}

const std::string kIds =
    "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"token_ids\":[5],\"text\":\"a\"}]}\n\n";
const std::string kWithoutIds =
    "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n\n";

TEST_F(StreamValidatorTest, TakesOutWhatOnlyBatonAskedFor) {
  with_continuity(R"({"prompt":"p","stream":true})");
  EXPECT_EQ(feed(": hi\n\n" + kIds + kIds + kTextFinish + kDoneEvent),
            ": hi\n\n" + kWithoutIds + kWithoutIds + kTextFinish + kDoneEvent);
  EXPECT_TRUE(validator().done());
}

TEST_F(StreamValidatorTest, LeavesInWhatTheClientAskedForToo) {
  with_continuity(R"({"prompt":"p","stream":true,"return_token_ids":true})");
  EXPECT_EQ(feed(kIds + kTextFinish), kIds + kTextFinish);
}

TEST_F(StreamValidatorTest, GoesOnUnderTheFirstStreamsIdAfterARestart) {
  with_continuity(R"({"prompt":"p","stream":true})");
  const std::string first =
      "data: {\"id\":\"x\",\"prompt_token_ids\":[1],\"choices\":[{\"index\":0,\"token_ids\":[5],"
      "\"text\":\"a\"}]}\n\n";
  EXPECT_EQ(feed(first), kWithoutIds);
  ASSERT_TRUE(validator().continuity()->progress());
  EXPECT_EQ(validator().continuity()->progress()->token_ids, "5");
  validator().restart();
  reader = wire::SseReader();
  std::string second = kIds;
  second.replace(second.find("\"x\""), 3, "\"y\"");
  EXPECT_EQ(feed(second), kWithoutIds);
}

TEST_F(StreamValidatorTest, RefusesAnEventWithoutEnd) {
  EXPECT_EQ(feed("data: {\"choices\":[\"" + std::string(2 * 1024 * 1024, 'x')), "");
  ASSERT_TRUE(validator().failure());
  EXPECT_EQ(validator().failure()->code(), Errc::EngineProtocol);
  EXPECT_THAT(validator().failure()->message(), HasSubstr("too large"));
}

}  // namespace
}  // namespace baton::pipeline
