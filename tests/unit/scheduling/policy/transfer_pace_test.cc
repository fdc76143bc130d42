// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/transfer_pace.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

namespace baton::scheduling {
namespace {

constexpr Time kNow{std::chrono::hours(1)};

// Hand-offs of prompts of all lengths that take 2 ms and so much for each token.
void hand_off(TransferPace& pace, double per_token, int count = 200) {
  std::mt19937_64 random(7);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t tokens = random() % 20'000;
    pace.took(tokens, 0.002 + per_token * static_cast<double>(tokens), kNow);
  }
}

TEST(TransferPace, IsNothingWhereNothingIsKnown) {
  EXPECT_EQ(TransferPace().seconds(1'000, kNow), 0);
  EXPECT_EQ(TransferPace(std::make_shared<TransferPace>()).seconds(1'000, kNow), 0);
}

TEST(TransferPace, IsLearned) {
  TransferPace pace;
  hand_off(pace, 1e-6);
  EXPECT_NEAR(pace.seconds(0, kNow), 0.002, 0.0001);
  EXPECT_NEAR(pace.seconds(10'000, kNow), 0.012, 0.0005);
}

TEST(TransferPace, OneThatIsNewIsAsTheOthers) {
  const auto common = std::make_shared<TransferPace>();
  TransferPace known(common);
  hand_off(known, 1e-6);
  const TransferPace fresh(common);
  EXPECT_NEAR(fresh.seconds(10'000, kNow), 0.012, 0.0005);
}

TEST(TransferPace, EqualWorkersAreEquallyFarAway) {
  const auto common = std::make_shared<TransferPace>();
  TransferPace one(common);
  TransferPace other(common);
  hand_off(one, 1.05e-6);
  hand_off(other, 0.95e-6);
  EXPECT_EQ(one.seconds(5'000, kNow), other.seconds(5'000, kNow));
}

TEST(TransferPace, OneThatIsFartherAwayTakesLonger) {
  const auto common = std::make_shared<TransferPace>();
  TransferPace near(common);
  TransferPace far(common);
  for (int i = 0; i < 20; ++i) {
    hand_off(near, 1e-6, 10);
    hand_off(far, 10e-6, 10);
  }
  EXPECT_NEAR(near.seconds(10'000, kNow), 0.012, 0.001);
  EXPECT_NEAR(far.seconds(10'000, kNow), 0.102, 0.01);
}

TEST(TransferPace, ASingleOutlierMovesItOnlyALittle) {
  TransferPace pace;
  hand_off(pace, 1e-6);
  pace.took(10'000, 60, kNow);
  EXPECT_LT(pace.seconds(10'000, kNow), 0.03);
}

TEST(TransferPace, OneThatWasFarAwayLongAgoIsTriedAgain) {
  const auto common = std::make_shared<TransferPace>();
  TransferPace near(common);
  TransferPace far(common);
  hand_off(far, 100e-6, 10);
  hand_off(near, 1e-6, 100);
  EXPECT_GT(far.seconds(10'000, kNow), 20 * near.seconds(10'000, kNow));
  EXPECT_NEAR(far.seconds(10'000, kNow + std::chrono::seconds(20)), near.seconds(10'000, kNow),
              0.001);
}

}  // namespace
}  // namespace baton::scheduling
