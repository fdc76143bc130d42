// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/request.h"
#include "scheduling/worker_selector.h"
#include "telemetry/log.h"
#include "unit/scheduling/known_prompt_stub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace baton::scheduling {
namespace {

using config::Bypass;
using model::Role;

// Two prefill and two decode workers: p1, p2, d1, d2.
struct BypassTest : testing::Test {
  BypassTest() {
    config.name = "m";
    config.policy = model::Policy::Kv;
    config.routing.conditional.policy = Bypass::IslBounding;
    for (const auto& [name, role] :
         {std::pair("p1", Role::Prefill), std::pair("p2", Role::Prefill),
          std::pair("d1", Role::Decode), std::pair("d2", Role::Decode)}) {
      model::WorkerSpec& made = config.workers.emplace_back();
      made.endpoint = {"127.0.0.1", static_cast<std::uint16_t>(config.workers.size())};
      made.role = role;
      made.name = name;
      made.kv_blocks = 1000;
    }
  }
  std::shared_ptr<fleet::Model> model() {
    if (!fleet) {
      config::Config all;
      all.models.push_back(config);
      fleet.emplace(all, metrics, log);
    }
    return fleet->find("m");
  }
  fleet::Worker& worker(const std::string& name) { return *model()->find_worker(name); }
  KnownPromptStub& prompt(std::uint64_t tokens) {
    model();
    observer = std::make_shared<KnownPromptStub>(tokens);
    return *observer;
  }
  WorkerSelector& begin() {
    selector.reset();
    job.reset();
    job.emplace(
        ScheduledRequest{.model = model(),
                         .api = engine::Api::Completions,
                         .body = engine::ClientBody::parse(R"({"model":"m","prompt":"p"})").value(),
                         .request_id = "id-1",
                         .hints = std::make_shared<const Hints>(hints)});
    job->observer = observer;
    selector.emplace(*job, random);
    selector->explain_to(decisions.open("id-1", "m", 0));
    return *selector;
  }
  // The worker that is to do both; empty: none is.
  std::string bypassed() {
    auto booking = begin().bypass(counters.bypasses);
    std::string name = booking ? booking->worker().name() : "";
    if (booking) bookings.push_back(std::move(*booking));
    return name;
  }
  std::string decision() { return decisions.find("id-1")->bypass; }

  config::Model config;
  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};
  handoff::Counters counters{metrics, "m"};
  DecisionLog decisions{10};
  std::optional<fleet::Fleet> fleet;
  Hints hints;
  Random random = [draw = std::uint64_t{0}]() mutable { return ++draw << 60; };
  std::shared_ptr<KnownPromptStub> observer;
  std::optional<ScheduledRequest> job;
  std::optional<WorkerSelector> selector;
  std::vector<fleet::Booking> bookings;
};

TEST_F(BypassTest, IsOffUnlessAskedFor) {
  config.routing.conditional.policy = Bypass::Never;
  prompt(1600).cached(worker("d1"), 1600);
  EXPECT_EQ(bypassed(), "");
  EXPECT_EQ(decision(), "");
}

TEST_F(BypassTest, LittleThatIsNewStaysWithTheDecodeWorker) {
  prompt(1600).cached(worker("d2"), 1552);
  EXPECT_EQ(bypassed(), "d2");
  EXPECT_EQ(decision(), "bypass_allowed_decode_gate_disabled");
  EXPECT_EQ(worker("d2").in_flight(), 1);
  EXPECT_EQ(worker("d2").load(0)->prefill_tokens(), 48);
}

TEST_F(BypassTest, MuchThatIsNewDoesNot) {
  prompt(1600).cached(worker("d2"), 480);  // 1120 new ones: 70 %
  EXPECT_EQ(bypassed(), "");
  EXPECT_EQ(decision(), "bypass_declined_by_policy");
  prompt(160'000).cached(worker("d2"), 157'952);  // few in share, 2048 in number
  EXPECT_EQ(bypassed(), "");
  prompt(160'000).cached(worker("d2"), 157'968);
  EXPECT_EQ(bypassed(), "d2");
  EXPECT_EQ(worker("d1").in_flight(), 0);
}

TEST_F(BypassTest, BusyPrefillLeavesItToDecode) {
  config.routing.conditional.policy = Bypass::PrefillLoad;
  config.routing.conditional.prefill_busy_threshold = 0.1;  // of 8192
  prompt(1600);
  EXPECT_EQ(bypassed(), "");
  EXPECT_EQ(decision(), "bypass_declined_by_policy");
  // Each prefill worker gets one.
  std::vector<fleet::Booking> prefills;
  prefills.push_back(begin().prefill().value());
  EXPECT_EQ(bypassed(), "");
  prefills.push_back(begin().prefill().value());
  EXPECT_NE(bypassed(), "");
}

TEST_F(BypassTest, EitherReasonWillDo) {
  config.routing.conditional.policy = Bypass::IslOrLoad;
  config.routing.conditional.prefill_busy_threshold = 0.1;
  prompt(1600).cached(worker("d1"), 1552);
  EXPECT_EQ(bypassed(), "d1");
  prompt(3200);
  EXPECT_EQ(bypassed(), "");
  const fleet::Booking first = begin().prefill().value();
  const fleet::Booking second = begin().prefill().value();
  EXPECT_NE(bypassed(), "");
}

TEST_F(BypassTest, AFullDecodeWorkerDoesNotTakeIt) {
  config.routing.conditional.decode_busy_threshold = 0.15;  // of 1000 blocks; a prompt has 100
  prompt(1600).cached(worker("d1"), 1600);
  observer->cached(worker("d2"), 1584);
  EXPECT_EQ(bypassed(), "d1");
  EXPECT_EQ(decision(), "bypass_allowed_decode_not_busy");
  // The blocks of equal prompts count once, so the second has room as well.
  EXPECT_NE(bypassed(), "");
  prompt(3200).cached(worker("d1"), 3200);
  observer->cached(worker("d2"), 3200);
  EXPECT_EQ(bypassed(), "");  // 200 blocks are too many for either
  EXPECT_EQ(decision(), "bypass_denied_decode_busy");
}

TEST_F(BypassTest, TwoAtOnceNeverTakeTheSamePlace) {
  config.routing.conditional.decode_busy_threshold = 0.15;
  config.routing.cost.assume_kv_reuse = false;  // each needs its 100 blocks
  auto& known = prompt(1600);
  known.cached(worker("d1"), 1600);
  known.cached(worker("d2"), 1600);
  constexpr std::size_t kThreads = 4;
  std::vector<std::vector<fleet::Booking>> kept(kThreads);  // until all have tried
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        const Random dice = [i] { return static_cast<std::uint64_t>(i) << 62; };
        const ScheduledRequest mine{
            .model = fleet->find("m"),
            .api = engine::Api::Completions,
            .body = engine::ClientBody::parse(R"({"model":"m","prompt":"p"})").value(),
            .request_id = "id",
            .hints = std::make_shared<const Hints>(),
            .observer = observer};
        for (int n = 0; n < 50; ++n) {
          WorkerSelector one(mine, dice);
          if (auto booking = one.bypass(counters.bypasses)) kept[i].push_back(std::move(*booking));
        }
      });
    }
  }
  std::size_t allowed = 0;
  for (const auto& some : kept) allowed += some.size();
  EXPECT_EQ(allowed, 2U);  // one on each decode worker
}

TEST_F(BypassTest, UnknownCapacityIsNoRoom) {
  config.routing.conditional.decode_busy_threshold = 0.9;
  for (auto& spec : config.workers) spec.kv_blocks.reset();
  prompt(1600).cached(worker("d1"), 1600);
  EXPECT_EQ(bypassed(), "");
  EXPECT_EQ(decision(), "bypass_denied_decode_busy_unknown");
  worker("d1").has_kv_blocks(1000);  // as the engine says
  EXPECT_EQ(bypassed(), "d1");
}

TEST_F(BypassTest, IsNotForThoseWhoNameTheirPrefillWorker) {
  prompt(1600).cached(worker("d1"), 1600);
  hints.prefill = Pin{.worker = "p1", .rank = {}};
  EXPECT_EQ(bypassed(), "");
}

TEST_F(BypassTest, NeedsADecodeSetThatWeighsAndAPromptThatIsKnown) {
  prompt(1600).cached(worker("d1"), 1600);
  observer.reset();
  EXPECT_EQ(bypassed(), "");
  fleet.reset();
  config.decode_policy = model::Policy::RoundRobin;
  prompt(1600).cached(worker("d1"), 1600);
  EXPECT_EQ(bypassed(), "");
}

TEST_F(BypassTest, IsNotWherePrefillIsRequired) {
  config.disaggregation = model::Disaggregation::Required;
  prompt(1600).cached(worker("d1"), 1600);
  EXPECT_EQ(bypassed(), "");
}

TEST_F(BypassTest, IsForeseen) {
  prompt(1600).cached(worker("d2"), 1552);
  const auto little = begin().preview().value();
  EXPECT_EQ(little.bypass, Bypassed::AllowedGateDisabled);
  EXPECT_FALSE(little.mode);
  EXPECT_FALSE(little.prefill);
  EXPECT_EQ(little.decode->candidates[little.decode->picked].worker->name(), "d2");
  EXPECT_EQ(worker("d2").in_flight(), 0);
  prompt(1600).cached(worker("d2"), 480);
  const auto much = begin().preview().value();
  EXPECT_EQ(much.bypass, Bypassed::DeclinedByPolicy);
  EXPECT_TRUE(much.prefill);
  EXPECT_EQ(
      metrics.render().find("baton_prefill_bypass_total{decision=\"bypass_allowed_decode_gate_"
                            "disabled\",model=\"m\"} 1"),
      std::string::npos)
      << "nothing was decided";
}

// prefill-router.md §4.10.
TEST_F(BypassTest, ARequestMaySayHowItsWorkersAreWeighed) {
  config.routing.conditional.policy = Bypass::Never;
  prompt(1600).cached(worker("p2"), 1552);
  EXPECT_EQ(begin().prefill()->worker().name(), "p2");
  hints.cost.overlap_score_credit = 0;
  const fleet::Booking busy = begin().prefill().value();
  const fleet::Booking other = begin().prefill().value();
  EXPECT_NE(busy.worker().name(), other.worker().name()) << "what is cached does not count";
  hints.cost = {};
  EXPECT_EQ(begin().prefill()->worker().name(), "p2") << "it was for that request only";
}

}  // namespace
}  // namespace baton::scheduling
