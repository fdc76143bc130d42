// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/patience.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::scheduling {
namespace {

using std::chrono::milliseconds;

TEST(Patience, IsReadFromItsText) {
  EXPECT_EQ(parse_patience("wait"), Patience::without_end());
  EXPECT_EQ(parse_patience("fail-fast"), Patience::none());
  EXPECT_EQ(parse_patience("0s"), Patience::none());
  EXPECT_EQ(parse_patience("500ms"), (Patience{.at_most = milliseconds(500)}));
  EXPECT_EQ(parse_patience("2s"), (Patience{.at_most = milliseconds(2000)}));
}

TEST(Patience, WhatCannotBeMeantIsNamed) {
  for (const char* text : {"", "soon", "-1s", "5", "WAIT"}) {
    const auto patience = parse_patience(text, "nvext.queue");
    ASSERT_FALSE(patience) << text;
    EXPECT_EQ(patience.error().code(), Errc::InvalidRouting);
    EXPECT_THAT(patience.error().message(), testing::StartsWith("nvext.queue: "));
  }
}

TEST(Patience, ConfiguredZeroIsAsLongAsItTakes) {
  EXPECT_EQ(Patience::configured(milliseconds(0)), Patience::without_end());
  EXPECT_EQ(Patience::configured(milliseconds(7)), (Patience{.at_most = milliseconds(7)}));
}

}  // namespace
}  // namespace baton::scheduling
