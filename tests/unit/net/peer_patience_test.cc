// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "net/peer_patience.h"

#include <gtest/gtest.h>

namespace baton::net {
namespace {

using namespace std::chrono_literals;

TEST(PeerPatience, BeginsWithItsTime) { EXPECT_EQ(PeerPatience(60s).left(), 60s); }

TEST(PeerPatience, EndsForAPeerThatTakesAByteNowAndThen) {
  PeerPatience patience(60s);
  int times = 0;
  for (; patience.left() > 0ms && times < 1000; ++times) patience.spend(10s, 1);
  EXPECT_EQ(times, 6);
}

TEST(PeerPatience, LastsForAPeerAtTheSlowestRate) {
  PeerPatience patience(60s);
  for (int i = 0; i < 100'000; ++i) patience.spend(1s, PeerPatience::kSlowestRate);
  EXPECT_EQ(patience.left(), 60s);
}

TEST(PeerPatience, GrowsOnlyByWhatIsTaken) {
  PeerPatience patience(1s);
  patience.spend(500ms, 0);
  EXPECT_EQ(patience.left(), 500ms);
  patience.spend(0ms, PeerPatience::kSlowestRate / 2);
  EXPECT_EQ(patience.left(), 1s);
}

TEST(PeerPatience, StaysWithinItsBounds) {
  PeerPatience patience(24h);
  patience.spend(0ms, std::size_t{1} << 50);
  EXPECT_EQ(patience.left(), 24h);
  patience.spend(1000h, 0);
  EXPECT_EQ(patience.left(), 0ms);
}

}  // namespace
}  // namespace baton::net
