// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/beyond_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::prompt {
namespace {

std::string beyond(std::string_view text) {
  return beyond_text(wire::JsonObject::parse(text).value());
}

TEST(BeyondText, NamesWhatIsNoText) {
  EXPECT_THAT(beyond(R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"},
                        {"type":"image_url","image_url":{"url":"http://127.0.0.1/a.png"}}]}]})"),
              testing::HasSubstr("messages[0]"));
}

TEST(BeyondText, TextIsText) {
  EXPECT_EQ(beyond(R"({"messages":[{"role":"user","content":"a"},
                      {"role":"user","content":[{"type":"text","text":"a"}]}]})"),
            "");
}

TEST(BeyondText, WhatMakesNoSenseIsTheEnginesToJudge) {
  EXPECT_EQ(beyond(R"({"messages":7})"), "");
  EXPECT_EQ(beyond(R"({"messages":[7]})"), "");
  EXPECT_EQ(beyond(R"({"prompt":"a"})"), "");
}

}  // namespace
}  // namespace baton::prompt
