// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/wish.h"

#include <gtest/gtest.h>

namespace baton::fleet {
namespace {

TEST(Wish, OfALegIsWhatTheRequestSaysOfThatLeg) {
  scheduling::Hints hints;
  hints.prefill = scheduling::Pin{"p", 1};
  hints.decode = scheduling::Pin{"d", std::nullopt};
  hints.allowed = {{"p", "d"}};
  hints.constraints.required = {"h200"};
  EXPECT_EQ(wish_for(model::Role::Prefill, hints).pin, hints.prefill);
  for (const model::Role role : {model::Role::Decode, model::Role::Aggregated}) {
    const Wish wish = wish_for(role, hints);
    EXPECT_EQ(wish.pin, hints.decode);
    EXPECT_EQ(wish.allowed, hints.allowed);
    EXPECT_EQ(wish.constraints, hints.constraints);
    EXPECT_TRUE(wish.excluded.empty());
    EXPECT_EQ(wish.mode, std::nullopt);
    EXPECT_EQ(wish.affinity, std::nullopt);
  }
}

}  // namespace
}  // namespace baton::fleet
