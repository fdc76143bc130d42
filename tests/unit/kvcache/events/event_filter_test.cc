// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/event_filter.h"

#include <gtest/gtest.h>

namespace baton::kvcache {
namespace {

std::optional<Skipped> reason(EventFilter& filter, const Event& event) {
  const auto classified = filter.classify(event);
  return classified ? std::nullopt : std::optional(classified.error());
}

Event of_group(std::optional<std::uint64_t> group, std::string_view kind = {}) {
  Event event;
  event.group = group;
  event.kind = kind;
  return event;
}

TEST(EventFilter, NothingSaidIsTheDevice) {
  EventFilter filter;
  EXPECT_EQ(filter.classify(Event{}), Tier::Device);
  EXPECT_EQ(tier_of(""), Tier::Device);
  EXPECT_EQ(tier_of("Cpu_Pinned"), Tier::Host);
  EXPECT_EQ(tier_of("GP"), std::nullopt);
  EXPECT_EQ(tier_of("GPUS"), std::nullopt);
}

TEST(EventFilter, OnlyKindsThatKeepTheWholePrefixCount) {
  EventFilter filter;
  for (const auto* kind : {"full_attention", "mla_attention", "sink_full_attention"})
    EXPECT_EQ(reason(filter, of_group(std::nullopt, kind)), std::nullopt) << kind;
  for (const auto* kind :
       {"sliding_window", "sliding_window_mla", "mamba", "chunked_local_attention",
        "encoder_only_attention", "cross_attention", "unknown", "something_new"})
    EXPECT_EQ(reason(filter, of_group(std::nullopt, kind)), Skipped::NotMainAttention) << kind;
}

TEST(EventFilter, LearnsTheKindOfAGroup) {
  EventFilter filter;
  EXPECT_EQ(reason(filter, of_group(3)), Skipped::UnknownGroup);
  EXPECT_EQ(reason(filter, of_group(0)), std::nullopt);
  EXPECT_EQ(reason(filter, of_group(std::nullopt)), std::nullopt);
  reason(filter, of_group(3, "mla_attention"));
  reason(filter, of_group(0, "mamba"));
  EXPECT_EQ(reason(filter, of_group(3)), std::nullopt);
  EXPECT_EQ(reason(filter, of_group(0)), Skipped::NotMainAttention);
  reason(filter, of_group(3, "sliding_window"));
  EXPECT_EQ(reason(filter, of_group(3)), Skipped::NotMainAttention) << "the last word counts";
  filter.forget();
  EXPECT_EQ(reason(filter, of_group(3)), Skipped::UnknownGroup);
}

TEST(EventFilter, RemembersNoMoreGroupsThanAModelHas) {
  EventFilter filter;
  for (std::uint64_t group = 1; group < 10'000; ++group)
    reason(filter, of_group(group, "full_attention"));
  EXPECT_EQ(reason(filter, of_group(1)), std::nullopt);
  EXPECT_EQ(reason(filter, of_group(9'999)), Skipped::UnknownGroup);
}

// The most telling reason is given.
TEST(EventFilter, OwnersComeBeforePlacesBeforeMediaBeforeGroups) {
  EventFilter filter;
  Event event = of_group(9, "mamba");
  event.medium = "TAPE";
  event.locality = "REMOTE";
  event.ownership = "kvcr";
  EXPECT_EQ(reason(filter, event), Skipped::Owned);
  event.ownership = {};
  EXPECT_EQ(reason(filter, event), Skipped::NotLocal);
  event.locality = "local";
  EXPECT_EQ(reason(filter, event), Skipped::UnknownMedium);
  event.medium = "DISK";
  EXPECT_EQ(reason(filter, event), Skipped::NotMainAttention);
  event.kind = "full_attention";
  EXPECT_EQ(filter.classify(event), Tier::Disk);
}

TEST(EventFilter, KnowsNothingSpecialWhereItJudgesAsAtTheStart) {
  EventFilter filter;
  EXPECT_TRUE(filter.knows_nothing_special());
  filter.classify(of_group(std::nullopt, "full_attention"));
  filter.classify(of_group(0, "full_attention"));
  EXPECT_TRUE(filter.knows_nothing_special());
  filter.classify(of_group(1, "sliding_window"));
  EXPECT_FALSE(filter.knows_nothing_special());
  filter.forget();
  EXPECT_TRUE(filter.knows_nothing_special());
  filter.classify(of_group(0, "mamba"));
  EXPECT_FALSE(filter.knows_nothing_special());
}

}  // namespace
}  // namespace baton::kvcache
