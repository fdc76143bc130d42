// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/pool.h"

#include "support/plain_model.h"
#include "unit/fleet/fleet_fixture.h"

#include <utility>

namespace baton::fleet {
namespace {

using model::Disaggregation;
using model::Role;
using testing::HasSubstr;

struct PoolTest : testing::Test {
  Pool& pool() {
    if (!pool_) {
      options.name = "m";
      pool_ = std::make_shared<Pool>(options, "blue", metrics, log);
    }
    return *pool_;
  }
  std::shared_ptr<Worker> add(Role role) {
    ++last_;
    auto made = make_worker(last_, worker(last_, role));
    pool().add(made);
    return made;
  }

  config::Model options = test::model_in_turn();
  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};

 private:
  std::shared_ptr<Pool> pool_;
  std::uint16_t last_ = 0;
};

TEST_F(PoolTest, HasWorkersByRole) {
  EXPECT_TRUE(pool().empty());
  EXPECT_EQ(pool().name(), "blue");
  const auto prefill = add(Role::Prefill);
  const auto decode = add(Role::Decode);
  const auto both = add(Role::Aggregated);
  EXPECT_FALSE(pool().empty());
  EXPECT_EQ(pool().workers(Role::Prefill).find("1"), prefill);
  EXPECT_EQ(std::as_const(pool()).workers(Role::Decode).find("2"), decode);
  EXPECT_EQ(pool().workers(Role::Aggregated).find("3"), both);
  for (const auto& one : {prefill, decode, both})
    EXPECT_EQ(pool().find_worker(one->authority()), one);
  EXPECT_EQ(pool().find_worker("4"), nullptr);
  for (const auto& one : {prefill, decode, both}) pool().remove(*one);
  EXPECT_TRUE(pool().empty());
}

TEST_F(PoolTest, WeighsAsManyAsCouldBringAWholeAnswer) {
  EXPECT_EQ(pool().weight(), 0U);
  add(Role::Prefill);
  EXPECT_EQ(pool().weight(), 0U);
  add(Role::Decode);
  add(Role::Aggregated);
  EXPECT_EQ(pool().weight(), 2U);
}

TEST_F(PoolTest, IsDisaggregatedWhereBothKindsAreThere) {
  EXPECT_FALSE(pool().disaggregated());
  const auto prefill = add(Role::Prefill);
  EXPECT_FALSE(pool().disaggregated());
  add(Role::Decode);
  EXPECT_TRUE(pool().disaggregated());
  prefill->unreachable(Failure::Unreachable, "gone");
  EXPECT_TRUE(pool().disaggregated()) << "how they are is another question";
  pool().remove(*prefill);
  EXPECT_FALSE(pool().disaggregated());
}

TEST_F(PoolTest, IsNeverDisaggregatedWhereThatIsOff) {
  options.disaggregation = Disaggregation::Off;
  add(Role::Prefill);
  add(Role::Decode);
  EXPECT_FALSE(pool().disaggregated());
}

TEST_F(PoolTest, SaysWhatIsMissing) {
  EXPECT_THAT(pool().why_not_ready(), HasSubstr("no workers"));
  add(Role::Prefill);
  EXPECT_THAT(pool().why_not_ready(), HasSubstr("no decode worker"));
  const auto decode = add(Role::Decode);
  EXPECT_EQ(pool().why_not_ready(), "");
  decode->set_draining(true);
  EXPECT_THAT(pool().why_not_ready(), HasSubstr("every worker is down"));
  decode->set_draining(false);
  decode->misconfigured("another model");
  EXPECT_THAT(pool().why_not_ready(), HasSubstr("every worker is down"));
  add(Role::Aggregated);
  EXPECT_EQ(pool().why_not_ready(), "");
}

TEST_F(PoolTest, ThatMustDisaggregateNeedsBothKinds) {
  options.disaggregation = Disaggregation::Required;
  const auto both = add(Role::Aggregated);
  both->answered();
  EXPECT_THAT(pool().why_not_ready(), HasSubstr("no decode worker is up"));
  const auto decode = add(Role::Decode);
  EXPECT_THAT(pool().why_not_ready(), HasSubstr("there is no prefill worker"));
  const auto prefill = add(Role::Prefill);
  EXPECT_THAT(pool().why_not_ready(), HasSubstr("no prefill worker has been heard of yet"));
  prefill->answered();
  EXPECT_EQ(pool().why_not_ready(), "");
  prefill->misconfigured("another model");
  EXPECT_THAT(pool().why_not_ready(), HasSubstr("every prefill worker is down"));
  prefill->answered();
  decode->unreachable(Failure::Unreachable, "gone");
  EXPECT_THAT(pool().why_not_ready(), HasSubstr("no decode worker is up"));
}

TEST_F(PoolTest, TellsEveryChangeInOneLineAndCountsIt) {
  const auto prefill = add(Role::Prefill);
  const Booking running(prefill);
  lines.clear();
  prefill->unreachable(Failure::Unreachable, "connection refused");
  EXPECT_EQ(occurrences(lines, "\n"), 1U) << lines;
  for (const char* part : {R"("event":"worker_changed")", R"("level":"warning")", R"("model":"m")",
                           R"("namespace":"blue")", R"("worker":"127.0.0.1:1")", R"("number":1)",
                           R"("role":"prefill")", R"("from":"new")", R"("to":"unreachable")",
                           R"("reason":"connection refused")", R"("in_flight":1)"}) {
    EXPECT_THAT(lines, HasSubstr(part));
  }
  lines.clear();
  pool().report(*prefill, "joined", "");
  EXPECT_THAT(lines, HasSubstr(R"("level":"info")"));
  EXPECT_THAT(lines, HasSubstr(R"("to":"joined")"));
  const std::string text = metrics.render();
  EXPECT_THAT(text, HasSubstr("baton_worker_changes_total{model=\"m\",role=\"prefill\","
                              "to=\"unreachable\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("baton_worker_changes_total{model=\"m\",role=\"prefill\","
                              "to=\"joined\"} 1\n"));
}

TEST_F(PoolTest, ADrainThatItIsToldOfCountsForItsPrefillState) {
  const auto prefill = add(Role::Prefill);
  prefill->answered();
  EXPECT_EQ(pool().prefill_state(), PrefillState::Active);
  prefill->set_draining(true);
  pool().report(*prefill, "draining", "");
  EXPECT_THAT(lines, HasSubstr("prefill_unavailable"));
  EXPECT_EQ(pool().prefill_state(), PrefillState::Unavailable);
}

}  // namespace
}  // namespace baton::fleet
