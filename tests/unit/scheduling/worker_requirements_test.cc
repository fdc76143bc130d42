// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/worker_requirements.h"

#include <gtest/gtest.h>

namespace baton::scheduling {
namespace {

using fleet::Worker;

TEST(WorkerRequirements, OfALegIsWhatTheRequestSaysOfThatLeg) {
  Hints hints;
  hints.prefill = Pin{"p", 1};
  hints.decode = Pin{"d", std::nullopt};
  hints.allowed = {{"p", "d"}};
  hints.constraints.required = {"h200"};
  EXPECT_EQ(requirements_for(model::Role::Prefill, hints).pin, hints.prefill);
  for (const model::Role role : {model::Role::Decode, model::Role::Aggregated}) {
    const WorkerRequirements requirements = requirements_for(role, hints);
    EXPECT_EQ(requirements.pin, hints.decode);
    EXPECT_EQ(requirements.allowed, hints.allowed);
    EXPECT_EQ(requirements.constraints, hints.constraints);
    EXPECT_TRUE(requirements.excluded.empty());
    EXPECT_EQ(requirements.mode, std::nullopt);
    EXPECT_EQ(requirements.affinity, std::nullopt);
  }
}

}  // namespace
}  // namespace baton::scheduling
