// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/feed.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace baton::kvcache {
namespace {

bool is_label(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos;
}

// They are metric labels and words in answers.
TEST(Feed, EveryReasonHasALabelOfItsOwn) {
  std::set<std::string_view> labels;
  for (std::size_t i = 0; i < kSkippedReasons; ++i) {
    const auto label = to_string(static_cast<Skipped>(i));
    EXPECT_TRUE(is_label(label)) << label;
    labels.insert(label);
  }
  EXPECT_EQ(labels.size(), kSkippedReasons);
  EXPECT_EQ(to_string(Skipped::NotMainAttention), "not_main_attention");
  EXPECT_EQ(to_string(Skipped::NoRoom), "no_room");
}

TEST(Feed, EveryStateHasALabelOfItsOwn) {
  std::set<std::string_view> labels;
  for (const auto state : {FeedState::Waiting, FeedState::Live, FeedState::Unconfirmed,
                           FeedState::Replaying, FeedState::Gap, FeedState::Broken}) {
    EXPECT_TRUE(is_label(to_string(state)));
    labels.insert(to_string(state));
  }
  EXPECT_EQ(labels.size(), 6U);
}

}  // namespace
}  // namespace baton::kvcache
