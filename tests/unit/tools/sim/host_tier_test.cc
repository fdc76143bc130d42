// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/host_tier.h"

#include <gtest/gtest.h>

namespace baton::sim {
namespace {

CachedBlock block(TokenId token) { return {.tokens = {token}}; }

TEST(HostTier, TheLeastRecentlyUsedGoesFirst) {
  HostTier host(2);
  EXPECT_TRUE(host.put(1, block(10)).stored);
  EXPECT_TRUE(host.put(2, block(20)).stored);
  host.touch(1);
  const auto outcome = host.put(3, block(30));
  ASSERT_TRUE(outcome.evicted);
  EXPECT_EQ(outcome.evicted->tokens, std::vector<TokenId>{20});
  EXPECT_EQ(outcome.evicted->tier, Tier::Host);
  EXPECT_TRUE(host.contains(1));
  EXPECT_FALSE(host.contains(2));
}

TEST(HostTier, WhatItHasIsNotStoredAgain) {
  HostTier host(2);
  host.put(1, block(10));
  host.put(2, block(20));
  EXPECT_FALSE(host.put(1, block(10)).stored);
  EXPECT_EQ(host.blocks().size(), 2U);
  EXPECT_EQ(host.put(3, block(30)).evicted->tokens, std::vector<TokenId>{20});
}

TEST(HostTier, WithoutRoomNothingIsKept) {
  HostTier host(0);
  EXPECT_FALSE(host.put(1, block(10)).stored);
  EXPECT_FALSE(host.contains(1));
}

TEST(HostTier, ClearsWhole) {
  HostTier host(2);
  host.put(1, block(10));
  host.clear();
  EXPECT_FALSE(host.contains(1));
  EXPECT_TRUE(host.put(1, block(10)).stored);
}

}  // namespace
}  // namespace baton::sim
