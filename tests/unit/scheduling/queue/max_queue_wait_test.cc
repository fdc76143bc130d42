// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/max_queue_wait.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::scheduling {
namespace {

using std::chrono::milliseconds;

TEST(MaxQueueWait, IsReadFromItsText) {
  EXPECT_EQ(parse_max_queue_wait("wait"), MaxQueueWait::without_end());
  EXPECT_EQ(parse_max_queue_wait("fail-fast"), MaxQueueWait::none());
  EXPECT_EQ(parse_max_queue_wait("0s"), MaxQueueWait::none());
  EXPECT_EQ(parse_max_queue_wait("500ms"), (MaxQueueWait{.at_most = milliseconds(500)}));
  EXPECT_EQ(parse_max_queue_wait("2s"), (MaxQueueWait{.at_most = milliseconds(2000)}));
}

TEST(MaxQueueWait, WhatCannotBeMeantIsNamed) {
  for (const char* text : {"", "soon", "-1s", "5", "WAIT"}) {
    const auto patience = parse_max_queue_wait(text, "nvext.queue");
    ASSERT_FALSE(patience) << text;
    EXPECT_EQ(patience.error().code(), Errc::InvalidRouting);
    EXPECT_THAT(patience.error().message(), testing::StartsWith("nvext.queue: "));
  }
}

TEST(MaxQueueWait, ConfiguredZeroIsAsLongAsItTakes) {
  EXPECT_EQ(MaxQueueWait::configured(milliseconds(0)), MaxQueueWait::without_end());
  EXPECT_EQ(MaxQueueWait::configured(milliseconds(7)), (MaxQueueWait{.at_most = milliseconds(7)}));
}

}  // namespace
}  // namespace baton::scheduling
