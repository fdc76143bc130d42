// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/constraints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numbers>

namespace baton::scheduling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using Taints = std::vector<std::string>;

TEST(Constraints, RequireEveryTaintTheyName) {
  const Constraints both{.required = {"a", "b"}, .preferred = {}};
  EXPECT_TRUE(both.satisfied_by(Taints{"c", "b", "a"}));
  EXPECT_FALSE(both.satisfied_by(Taints{"a"}));
  EXPECT_FALSE(both.satisfied_by(Taints{}));
  EXPECT_FALSE(both.satisfied_by(Taints{"a", "B"}));
  EXPECT_TRUE(Constraints{}.satisfied_by(Taints{}));
}

TEST(Constraints, PreferBySumOfWeights) {
  const Constraints requirements{.required = {},
                                 .preferred = {{"near", 0.75}, {"fast", 0.25}, {"old", -0.5}}};
  EXPECT_NEAR(requirements.preference(Taints{"near", "fast"}), 0.466921, 1e-6);
  EXPECT_NEAR(requirements.preference(Taints{"old", "other"}), 1.587431, 1e-6);
  EXPECT_EQ(requirements.preference(Taints{"other"}), 1);
  EXPECT_EQ(Constraints{}.preference(Taints{"near"}), 1);
}

TEST(Constraints, PreferenceStaysBetweenOneEthAndE) {
  const Constraints huge{.required = {}, .preferred = {{"good", 1e6}, {"bad", -1e6}}};
  EXPECT_NEAR(huge.preference(Taints{"good"}), 1 / std::numbers::e, 1e-9);
  EXPECT_NEAR(huge.preference(Taints{"bad"}), std::numbers::e, 1e-9);
}

TEST(Constraints, MergedAskForBoth) {
  Constraints one{.required = {"a", "b"}, .preferred = {{"x", 1}, {"y", 0.5}}};
  one.merge({.required = {"b", "c"}, .preferred = {{"y", 0.25}, {"z", -1}}});
  EXPECT_THAT(one.required, ElementsAre("a", "b", "c"));
  EXPECT_THAT(one.preferred, ElementsAre(Pair("x", 1), Pair("y", 0.75), Pair("z", -1)));
}

model::WorkerSpec in_rack(model::Enforcement enforcement, double weight) {
  model::WorkerSpec spec;
  spec.endpoint = {"p", 9001};
  spec.transfer_domain = {"rack", "r7", enforcement, weight};
  return spec;
}

TEST(TransferConstraints, AreNoneWithoutADomain) {
  const auto constraints = transfer_constraints({});
  ASSERT_TRUE(constraints);
  EXPECT_TRUE(constraints->empty());
}

TEST(TransferConstraints, RequireOrPreferTheTaintOfThePlace) {
  const auto required = transfer_constraints(in_rack(model::Enforcement::Required, 0));
  ASSERT_TRUE(required);
  EXPECT_EQ(*required, (Constraints{.required = {topology_taint("rack=r7")}, .preferred = {}}));
  EXPECT_EQ(required->required[0], "baton.topology/rack=r7");
  const auto preferred = transfer_constraints(in_rack(model::Enforcement::Preferred, 0.5));
  ASSERT_TRUE(preferred);
  EXPECT_EQ(*preferred,
            (Constraints{.required = {}, .preferred = {{"baton.topology/rack=r7", 0.5}}}));
}

TEST(TransferConstraints, ThatSayTooLittleAreAnError) {
  model::WorkerSpec nowhere = in_rack(model::Enforcement::Required, 0);
  nowhere.transfer_domain->value.clear();
  model::WorkerSpec nameless = in_rack(model::Enforcement::Required, 0);
  nameless.transfer_domain->name.clear();
  const std::pair<model::WorkerSpec, std::string> cases[] = {
      {nowhere, "a value for rack"},
      {nameless, "a name"},
      {in_rack(model::Enforcement::Preferred, 0), "the weight"},
  };
  for (const auto& [spec, lacks] : cases) {
    const auto constraints = transfer_constraints(spec);
    ASSERT_FALSE(constraints);
    EXPECT_EQ(constraints.error().code(), Errc::NoEligibleWorker);
    EXPECT_THAT(constraints.error().message(), HasSubstr("p:9001"));
    EXPECT_THAT(constraints.error().message(), HasSubstr(lacks));
  }
}

}  // namespace
}  // namespace baton::scheduling
