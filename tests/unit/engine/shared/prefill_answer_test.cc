// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/prefill_answer.h"

#include <gtest/gtest.h>

namespace baton::engine {
namespace {

TEST(PrefillAnswer, HasItsFirstChoiceAtHand) {
  const std::string text =
      R"({"id":"1","error":null,"choices":[{"finish_reason":"stop","x":1},{"finish_reason":"length"}]})";
  const auto answer = parse_prefill_answer(text);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->finish_reason, "stop");
  EXPECT_EQ(answer->choice.find_integer("x"), 1);
  EXPECT_EQ(answer->completion.find_string("id"), "1");
}

TEST(PrefillAnswer, IsSoundUnlessTheEngineGaveUp) {
  const auto with = [](const std::string& reason) {
    return R"({"choices":[{"finish_reason":")" + reason + R"("}]})";
  };
  for (const std::string reason : {"length", "stop", "not_finished", "tool_calls"})
    EXPECT_TRUE(parse_sound_prefill_answer(with(reason))) << reason;
  for (const std::string reason : {"abort", "error"}) {
    const std::string text = with(reason);
    EXPECT_TRUE(parse_prefill_answer(text)) << reason;
    const auto answer = parse_sound_prefill_answer(text);
    ASSERT_FALSE(answer) << reason;
    EXPECT_EQ(answer.error().code(), Errc::EngineFailed);
  }
}

TEST(PrefillAnswer, SaysWhatTheEngineSaidInstead) {
  const auto answer = parse_prefill_answer(R"({"error":"out of memory"})");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Errc::EngineFailed);
  EXPECT_EQ(answer.error().message(), "out of memory");
}

}  // namespace
}  // namespace baton::engine
