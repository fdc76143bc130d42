// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/worker_booking.h"

#include "unit/fleet/fleet_fixture.h"
#include "unit/scheduling/book_worker.h"

#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace baton::scheduling {
namespace {

using fleet::Booking;
using fleet::LoadNotifier;
using fleet::make_worker;
using fleet::worker;
using fleet::Worker;
using fleet::WorkerSet;
using model::Policy;
using model::Role;
using testing::AllOf;
using testing::HasSubstr;

constexpr Policy kPolicies[] = {Policy::RoundRobin, Policy::Random, Policy::PowerOfTwo,
                                Policy::LeastLoaded};

// Decode workers a, b, c, … with the ports 1, 2, 3, …
struct Workers {
  explicit Workers(Policy policy = Policy::RoundRobin, Role role = Role::Decode,
                   std::chrono::milliseconds itl = {},
                   std::shared_ptr<LoadNotifier> load_notifier = {})
      : role_(role), set(role, policy, {}, std::move(load_notifier), {}, itl) {}

  Worker& add(std::uint32_t ranks = 1, std::vector<std::string> taints = {},
              model::HandoffMode mode = model::HandoffMode::NixlPull) {
    const auto number = static_cast<std::uint16_t>(set.size() + 1);
    model::WorkerSpec spec = worker(number, role_);
    spec.name = std::string(1, static_cast<char>('a' + number - 1));
    spec.data_parallel_size = ranks;
    spec.taints = std::move(taints);
    spec.handoff = mode;
    set.add(make_worker(number, std::move(spec)));
    return *set.members()->workers.back();
  }
  std::shared_ptr<Worker> named(std::string_view name) { return set.find(name); }
  std::string booked(const WorkerRequirements& requirements = {}) {
    const auto booking = test::book_worker(set, requirements, random_);
    if (!booking) {
      ADD_FAILURE() << booking.error().message();
      return "";
    }
    const auto rank = booking->rank();
    return booking->worker().name() + (rank ? std::to_string(*rank) : "");
  }
  Error refused(const WorkerRequirements& requirements) {
    const auto booking = test::book_worker(set, requirements, random_);
    if (booking) {
      ADD_FAILURE() << "booked " << booking->worker().name();
      return Error(Errc::Internal, "");
    }
    EXPECT_FALSE(scheduling::can_serve(set, requirements));
    const auto peeked = scheduling::peek(set, requirements, random_);
    EXPECT_FALSE(peeked);
    if (!peeked) EXPECT_EQ(peeked.error().message(), booking.error().message());
    return booking.error();
  }

 private:
  Role role_;

 public:
  WorkerSet set;

 private:
  Random random_ = std::mt19937_64(20240607);
};

auto is_error(Errc code, std::string text) {
  return AllOf(testing::Property(&Error::code, code),
               testing::Property(&Error::message, HasSubstr(text)));
}

WorkerRequirements pin(std::string who, std::optional<std::uint32_t> rank = {}) {
  WorkerRequirements requirements;
  requirements.pin = Pin{std::move(who), rank};
  return requirements;
}

TEST(WorkerSet, BooksInTurn) {
  Workers workers;
  workers.add();
  workers.add();
  EXPECT_EQ(workers.booked() + workers.booked() + workers.booked(), "aba");
}

TEST(WorkerSet, EveryRankIsACandidateAndTurnsGoRoundTheWorkers) {
  Workers workers;
  workers.add(3);
  workers.add(1);
  workers.add(2);
  std::string order;
  for (int i = 0; i < 6; ++i) order += workers.booked() + " ";
  EXPECT_EQ(order, "a0 b c0 a1 c1 a2 ");
}

TEST(WorkerSet, LoadIsCountedByRank) {
  Workers workers(Policy::LeastLoaded);
  const Worker& worker = workers.add(4);
  std::vector<Booking> held;
  for (int i = 0; i < 4; ++i)
    held.push_back(test::book_worker(workers.set, {}, fleet::no_dice).value());
  for (std::uint32_t rank = 0; rank < 4; ++rank) EXPECT_EQ(worker.in_flight(rank), 1) << rank;
  EXPECT_EQ(worker.in_flight(), 4);
  held.erase(held.begin() + 1);  // the second candidate: rank 1
  EXPECT_EQ(workers.booked() + workers.booked(), "a1a1");
  EXPECT_EQ(worker.in_flight(), 3);
}

TEST(WorkerSet, ASingleRankIsNeverTold) {
  Workers workers;
  workers.add(1);
  EXPECT_EQ(test::book_worker(workers.set, {}, fleet::no_dice)->rank(), std::nullopt);
  EXPECT_EQ(test::book_worker(workers.set, pin("a", 0), fleet::no_dice)->rank(), std::nullopt);
}

TEST(WorkerSet, EmptyHasNoWorkers) {
  Workers workers(Policy::RoundRobin, Role::Prefill);
  const Error error = workers.refused({});
  EXPECT_THAT(error, is_error(Errc::NoWorkers, "no prefill worker"));
  EXPECT_EQ(error.retry_after(), std::chrono::seconds(1));
  EXPECT_THAT(workers.refused(pin("a")), is_error(Errc::NoWorkers, "no prefill worker"));
}

TEST(WorkerSet, NeverBooksWhoIsDownOrExcluded) {
  for (const Policy policy : kPolicies) {
    Workers workers(policy);
    Worker& down = workers.add();
    const Worker& failed = workers.add();
    workers.add();
    down.unreachable(fleet::Failure::Unreachable, "gone");
    WorkerRequirements requirements;
    requirements.excluded = {failed.id()};
    for (int i = 0; i < 50; ++i)
      EXPECT_EQ(workers.booked(requirements), "c") << model::to_string(policy);
    EXPECT_TRUE(scheduling::can_serve(workers.set, requirements));
  }
}

TEST(WorkerSet, WithAllDownOrExcludedHasNoWorkers) {
  Workers workers;
  Worker& a = workers.add();
  Worker& b = workers.add();
  a.unreachable(fleet::Failure::Unreachable, "gone");
  WorkerRequirements requirements;
  requirements.excluded = {b.id()};
  EXPECT_THAT(workers.refused(requirements),
              is_error(Errc::NoWorkers, "every decode worker has failed"));
  b.unreachable(fleet::Failure::Unreachable, "gone");
  EXPECT_THAT(workers.refused({}), is_error(Errc::NoWorkers, "no decode worker is available"));
  EXPECT_FALSE(workers.set.any_available());
  b.answered();
  EXPECT_TRUE(workers.set.any_available());
  EXPECT_EQ(workers.booked(), "b");
}

TEST(EligibilityTiers, TheBestOnesWhoMayHaveItGetTheRequest) {
  for (const Policy policy : kPolicies) {
    Workers workers(policy);
    Worker& good = workers.add();
    Worker& overloaded = workers.add();
    workers.add();  // nobody has heard of it
    Worker& down = workers.add();
    Worker& draining = workers.add();
    Worker& wrong = workers.add();
    good.answered();
    overloaded.answered();
    overloaded.pushed_back(std::chrono::seconds(20));
    down.unreachable(fleet::Failure::Unreachable, "gone");
    draining.answered();
    draining.set_draining(true);
    wrong.misconfigured("another model");
    const auto counts = [&](const WorkerRequirements& requirements) {
      std::map<std::string, int> seen;
      for (int i = 0; i < 60; ++i) ++seen[workers.booked(requirements)];
      std::string all;
      for (const auto& [name, count] : seen) all += name;
      return all;
    };
    EXPECT_EQ(counts({}), "a") << model::to_string(policy);
    WorkerRequirements requirements;
    requirements.excluded = {good.id()};
    requirements.worst = fleet::EligibilityTier::Down;
    EXPECT_EQ(counts(requirements), "bc") << model::to_string(policy);
    requirements.excluded = {{1}, {2}, {3}};
    EXPECT_EQ(counts(requirements), "d") << "rather this one than nobody";
    requirements.worst = fleet::EligibilityTier::Spare;
    EXPECT_THAT(workers.refused(requirements),
                is_error(Errc::NoWorkers, "every decode worker has failed"));
    requirements.excluded = {{1}, {2}, {3}, {4}};
    requirements.worst = fleet::EligibilityTier::Down;
    EXPECT_THAT(workers.refused(requirements), is_error(Errc::NoWorkers, "failed"));
    requirements.worst = fleet::EligibilityTier::Out;
    EXPECT_EQ(counts(requirements), "ef");
  }
}

TEST(EligibilityTiers, OfThoseWhoMayNotHaveItDoNotMatter) {
  Workers workers;
  Worker& good = workers.add();
  workers.add(1, {"h200"});
  good.answered();
  WorkerRequirements requirements;
  requirements.constraints.required = {"h200"};
  EXPECT_EQ(workers.booked(requirements), "b")
      << "the only one that may, though nobody has heard of it";
}

TEST(EligibilityTiers, OneWhoseTimeOutIsOverGetsOneRequest) {
  config::Health health;
  health.failures = 1;
  health.backoff = std::chrono::milliseconds(0);
  WorkerSet set(Role::Decode, Policy::RoundRobin);
  const auto returning =
      std::make_shared<Worker>(model::WorkerId{1}, worker(1, Role::Decode), health);
  set.add(returning);
  set.add(make_worker(2, worker(2, Role::Decode)));
  set.find("2")->answered();
  returning->failed(fleet::Failure::Broken, "broken");
  returning->answered();
  ASSERT_EQ(returning->condition(), fleet::Condition::HalfOpen);
  const Booking trial = test::book_worker(set, {}, fleet::no_dice).value();
  EXPECT_EQ(&trial.worker(), returning.get());
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(test::book_worker(set, {}, fleet::no_dice)->worker().id().value, 2U);
  returning->succeeded();
  test::book_worker(set, {}, fleet::no_dice).value();
  EXPECT_EQ(test::book_worker(set, {}, fleet::no_dice)->worker().id().value +
                test::book_worker(set, {}, fleet::no_dice)->worker().id().value,
            3U)
      << "both have their turn";
}

TEST(WorkerSet, WhoIsRemovedIsNotChosenAndWhoLookedKeepsWhatItSaw) {
  Workers workers;
  workers.add();
  workers.add();
  const auto seen = workers.set.members();
  workers.set.remove(*workers.named("a"));
  EXPECT_EQ(workers.booked() + workers.booked(), "bb");
  EXPECT_EQ(workers.named("a"), nullptr);
  EXPECT_EQ(seen->workers.size(), 2U);
  workers.set.remove(*workers.named("b"));
  EXPECT_TRUE(workers.set.empty());
  EXPECT_THAT(workers.refused({}), is_error(Errc::NoWorkers, "no decode worker"));
}

TEST(Pins, TakeTheWorkerByNameAddressOrNumber) {
  for (const Policy policy : {Policy::RoundRobin, Policy::Random, Policy::PowerOfTwo,
                              Policy::LeastLoaded, Policy::Direct}) {
    Workers workers(policy);
    workers.add();
    workers.add(2);
    EXPECT_EQ(workers.booked(pin("a")), "a");
    EXPECT_EQ(workers.booked(pin("127.0.0.1:1")), "a");
    EXPECT_EQ(workers.booked(pin("1", 0)), "a");
    EXPECT_EQ(workers.booked(pin("b", 1)), "b1");
    EXPECT_EQ(workers.booked(pin("2", 0)), "b0");
    EXPECT_TRUE(scheduling::can_serve(workers.set, pin("a")));
  }
}

TEST(Pins, ANameWinsOverANumber) {
  WorkerSet set(Role::Decode, Policy::Direct);
  for (std::uint16_t i = 1; i <= 2; ++i) {
    model::WorkerSpec spec = worker(i, Role::Decode);
    if (i == 2) spec.name = "1";
    set.add(make_worker(i, spec));
  }
  EXPECT_EQ(test::book_worker(set, pin("1"), fleet::no_dice)->worker().id().value, 2U);
  EXPECT_EQ(test::book_worker(set, pin("127.0.0.1:1"), fleet::no_dice)->worker().id().value, 1U);
}

TEST(Pins, EachImpossibleOneHasItsOwnWords) {
  Workers workers;
  workers.add();
  workers.add(4);
  Worker& down = workers.add();
  workers.add(1, {}, model::HandoffMode::Mooncake);
  down.unreachable(fleet::Failure::Unreachable, "gone");
  EXPECT_THAT(workers.refused(pin("z")),
              is_error(Errc::InvalidRouting, "has no decode worker 'z'"));
  EXPECT_THAT(workers.refused(pin("a", 1)), is_error(Errc::InvalidRouting, "ranks are 0 to 0"));
  EXPECT_THAT(workers.refused(pin("b", 4)), is_error(Errc::InvalidRouting, "ranks are 0 to 3"));
  EXPECT_THAT(workers.refused(pin("b")),
              is_error(Errc::InvalidRouting, "requires an explicit dp rank; send x-baton-dp-rank"));
  const Error unavailable = workers.refused(pin("c"));
  EXPECT_THAT(unavailable, is_error(Errc::NoEligibleWorker, "'c' is asked for"));
  EXPECT_EQ(unavailable.retry_after(), std::chrono::seconds(1));

  WorkerRequirements requirements = pin("a");
  requirements.allowed = {{"b"}};
  EXPECT_THAT(workers.refused(requirements),
              is_error(Errc::InvalidRouting, "not one of the allowed"));
  requirements = pin("a");
  requirements.constraints.required = {"h200"};
  EXPECT_THAT(workers.refused(requirements),
              is_error(Errc::InvalidRouting, "required taint of h200"));
  requirements = pin("d");
  requirements.mode = model::HandoffMode::NixlPull;
  EXPECT_THAT(workers.refused(requirements),
              is_error(Errc::InvalidRouting, "hands off by mooncake, and nixl_pull is needed"));
}

TEST(Pins, AreTestedInTheOrderAllowedAvailableRankTaints) {
  Workers workers;
  Worker& worker = workers.add(2);
  WorkerRequirements requirements = pin("a", 9);
  requirements.constraints.required = {"h200"};
  requirements.allowed.emplace();
  worker.unreachable(fleet::Failure::Unreachable, "gone");
  EXPECT_THAT(workers.refused(requirements), is_error(Errc::InvalidRouting, "allowed"));
  requirements.allowed.reset();
  EXPECT_THAT(workers.refused(requirements), is_error(Errc::NoEligibleWorker, "not available"));
  worker.answered();
  EXPECT_THAT(workers.refused(requirements), is_error(Errc::InvalidRouting, "no rank 9"));
  requirements.pin->rank = 1;
  EXPECT_THAT(workers.refused(requirements), is_error(Errc::InvalidRouting, "required taint"));
  requirements.constraints.required.clear();
  EXPECT_EQ(workers.booked(requirements), "a1");
}

TEST(Pins, OutliveAFailureOfTheirWorker) {
  Workers workers;
  const Worker& failed = workers.add();
  workers.add();
  WorkerRequirements requirements = pin("a");
  requirements.excluded = {failed.id()};
  EXPECT_EQ(workers.booked(requirements), "a");
}

TEST(Pins, OfPrefillNameThePrefillHeaders) {
  Workers workers(Policy::Direct, Role::Prefill);
  workers.add(2);
  EXPECT_THAT(workers.refused(pin("a")), is_error(Errc::InvalidRouting, "x-baton-prefill-dp-rank"));
  EXPECT_THAT(workers.refused({}), is_error(Errc::InvalidRouting, "x-baton-prefill-instance-id"));
}

TEST(WorkerSet, UnderDirectTheRequestMustNameItsWorker) {
  Workers workers(Policy::Direct);
  workers.add();
  EXPECT_THAT(workers.refused({}), is_error(Errc::InvalidRouting, "x-baton-worker-instance-id"));
  WorkerRequirements session;
  session.affinity = RankId{{1}, std::nullopt};
  EXPECT_THAT(workers.refused(session), is_error(Errc::InvalidRouting, "direct"));
}

TEST(AllowLists, AdmitTheirWorkersOnly) {
  for (const Policy policy : kPolicies) {
    Workers workers(policy);
    for (int i = 0; i < 4; ++i) workers.add();
    WorkerRequirements requirements;
    requirements.allowed = {{"b", "127.0.0.1:4", "unknown"}};
    std::map<std::string, int> counts;
    for (int i = 0; i < 100; ++i) ++counts[workers.booked(requirements)];
    EXPECT_EQ(counts.size(), 2U) << model::to_string(policy);
    EXPECT_GT(counts["b"], 0);
    EXPECT_GT(counts["d"], 0);
  }
}

TEST(AllowLists, ThatAdmitNobodyHaveTheirOwnWords) {
  Workers workers;
  Worker& a = workers.add();
  workers.add();
  WorkerRequirements requirements;
  requirements.allowed.emplace();
  EXPECT_THAT(workers.refused(requirements),
              is_error(Errc::NoEligibleWorker, "allows no worker at all"));
  requirements.allowed = {{"z"}};
  EXPECT_THAT(workers.refused(requirements),
              is_error(Errc::NoEligibleWorker, "none of the workers the request allows"));
  requirements.allowed = {{"a"}};
  requirements.excluded = {a.id()};
  EXPECT_THAT(workers.refused(requirements), is_error(Errc::NoEligibleWorker, "has failed"));
  requirements.excluded.clear();
  a.unreachable(fleet::Failure::Unreachable, "gone");
  const Error error = workers.refused(requirements);
  EXPECT_THAT(error, is_error(Errc::NoEligibleWorker, "is available"));
  EXPECT_EQ(error.retry_after(), std::chrono::seconds(1));
}

TEST(Modes, AreThoseOfTheOtherLeg) {
  Workers workers;
  workers.add();
  workers.add(1, {}, model::HandoffMode::Mooncake);
  WorkerRequirements requirements;
  requirements.mode = model::HandoffMode::Mooncake;
  EXPECT_EQ(workers.booked(requirements) + workers.booked(requirements), "bb");
  requirements.mode = model::HandoffMode::NixlPush;
  EXPECT_THAT(workers.refused(requirements),
              is_error(Errc::NoEligibleWorker, "hands off by nixl_push"));
}

TEST(Taints, RequiredAreACondition) {
  Workers workers;
  workers.add(1, {"h100"});
  workers.add(1, {"h200", "fast"});
  WorkerRequirements requirements;
  requirements.constraints.required = {"fast", "h200"};
  EXPECT_EQ(workers.booked(requirements) + workers.booked(requirements), "bb");
  requirements.constraints.required = {"fast", "b200"};
  EXPECT_THAT(workers.refused(requirements),
              is_error(Errc::NoEligibleWorker, "taints: fast, b200"));
}

TEST(Taints, ThePlaceOfAWorkerIsOne) {
  WorkerSet set(Role::Decode, Policy::RoundRobin);
  for (std::uint16_t i = 1; i <= 3; ++i) {
    model::WorkerSpec spec = worker(i, Role::Decode);
    spec.topology = {"zone=a", "rack=r" + std::to_string(i)};
    set.add(make_worker(i, spec));
  }
  model::WorkerSpec prefill;
  prefill.transfer_domain = {"rack", "r2", model::Enforcement::Required, 0};
  WorkerRequirements requirements;
  requirements.constraints.merge(scheduling::transfer_constraints(prefill).value());
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(test::book_worker(set, requirements, fleet::no_dice)->worker().id().value, 2U);
  prefill.transfer_domain->value = "r9";
  requirements.constraints = scheduling::transfer_constraints(prefill).value();
  EXPECT_FALSE(scheduling::can_serve(set, requirements));
}

TEST(Taints, PreferredOnesAreTakenFirstInTurnsAndDice) {
  for (const Policy policy : {Policy::RoundRobin, Policy::Random}) {
    Workers workers(policy);
    workers.add();
    workers.add(1, {"near"});
    Worker& other = workers.add(1, {"near"});
    workers.add(1, {"slow"});
    WorkerRequirements requirements;
    requirements.constraints.preferred = {{"near", 1}, {"slow", -1}};
    std::map<std::string, int> counts;
    for (int i = 0; i < 100; ++i) ++counts[workers.booked(requirements)];
    EXPECT_EQ(counts.size(), 2U) << model::to_string(policy);
    EXPECT_GT(counts["b"], 0);
    EXPECT_GT(counts["c"], 0);
    // Only a preference: without the near ones, the others serve.
    other.unreachable(fleet::Failure::Unreachable, "gone");
    requirements.excluded = {{2}};
    EXPECT_EQ(workers.booked(requirements), "a");
  }
}

TEST(Taints, PreferredOnesAreWorthSomeLoad) {
  Workers workers(Policy::LeastLoaded);
  workers.add();
  workers.add(1, {"near"});
  WorkerRequirements requirements;
  requirements.constraints.preferred = {{"near", 1}};
  // Factor 0.467: one request more is fine (2 · 0.467 < 1), two more are not (3 · 0.467 > 1).
  EXPECT_EQ(workers.booked(requirements), "b");
  const Booking first(workers.named("b"));
  EXPECT_EQ(workers.booked(requirements), "b");
  const Booking second(workers.named("b"));
  EXPECT_EQ(workers.booked(requirements), "a");
}

TEST(Affinity, IsTakenWhereItCanBe) {
  for (const Policy policy : kPolicies) {
    Workers workers(policy);
    workers.add();
    workers.add(4);
    WorkerRequirements requirements;
    requirements.affinity = RankId{{2}, 3};
    for (int i = 0; i < 10; ++i) {
      const auto booking = test::book_worker(workers.set, requirements, fleet::no_dice);
      ASSERT_TRUE(booking);
      EXPECT_EQ(booking->rank_id(), requirements.affinity);
    }
  }
}

TEST(Affinity, IsLeftWhereItCannotBe) {
  Workers workers;
  workers.add();
  Worker& bound = workers.add(2);
  WorkerRequirements requirements;
  requirements.affinity = RankId{bound.id(), 1};
  const auto leaves = [&](const WorkerRequirements& asked) {
    const auto booking = test::book_worker(workers.set, asked, fleet::no_dice);
    return booking && booking->rank_id() != asked.affinity;
  };
  WorkerRequirements excluded = requirements;
  excluded.excluded = {bound.id()};
  EXPECT_TRUE(leaves(excluded));
  WorkerRequirements not_allowed = requirements;
  not_allowed.allowed = {{"a"}};
  EXPECT_TRUE(leaves(not_allowed));
  for (const RankId gone :
       {RankId{{99}, std::nullopt}, RankId{bound.id(), 2}, RankId{bound.id(), {}}}) {
    WorkerRequirements elsewhere = requirements;
    elsewhere.affinity = gone;
    EXPECT_TRUE(leaves(elsewhere));
  }
  bound.unreachable(fleet::Failure::Unreachable, "gone");
  EXPECT_TRUE(leaves(requirements));
}

TEST(Affinity, MustNotContradictAPin) {
  Workers workers;
  Worker& a = workers.add();
  workers.add();
  WorkerRequirements requirements = pin("b");
  requirements.affinity = RankId{a.id(), std::nullopt};
  EXPECT_THAT(workers.refused(requirements), is_error(Errc::InvalidRouting, "x-baton-session-id"));
  requirements.pin->worker = "a";
  EXPECT_EQ(workers.booked(requirements), "a");
  // A rank that is no longer there is no contradiction.
  requirements.pin->worker = "b";
  a.unreachable(fleet::Failure::Unreachable, "gone");
  EXPECT_EQ(workers.booked(requirements), "b");
}

TEST(Peek, TellsWhatBookWillDoAndDoesNothing) {
  for (const Policy policy : {Policy::RoundRobin, Policy::LeastLoaded}) {
    Workers workers(policy);
    workers.add(2);
    workers.add();
    workers.add();
    for (int i = 0; i < 12; ++i) {
      const auto choice = scheduling::peek(workers.set, {}, fleet::no_dice);
      const auto again = scheduling::peek(workers.set, {}, fleet::no_dice);
      ASSERT_TRUE(choice && again);
      EXPECT_EQ(choice->picked, again->picked);
      for (const auto& worker : workers.set.members()->workers) EXPECT_EQ(worker->in_flight(), 0);
      const auto booking = test::book_worker(workers.set, {}, fleet::no_dice);
      const Choice::Candidate& picked = choice->candidates.at(choice->picked);
      EXPECT_EQ(picked.worker.get(), &booking->worker());
      EXPECT_EQ(picked.rank, booking->rank());
    }
  }
}

TEST(Peek, ExplainsEveryCandidate) {
  Workers workers(Policy::LeastLoaded);
  workers.add(1, {"near"});
  Worker& down = workers.add();
  Worker& failed = workers.add();
  workers.add();
  const Booking first(workers.named("a"));
  const Booking second(workers.named("a"));
  down.unreachable(fleet::Failure::Unreachable, "gone");
  WorkerRequirements requirements;
  requirements.constraints.preferred = {{"near", 1}};
  requirements.excluded = {failed.id()};
  const auto choice = scheduling::peek(workers.set, requirements, fleet::no_dice);
  ASSERT_TRUE(choice);
  ASSERT_EQ(choice->candidates.size(), 4U);
  const auto& seen = choice->candidates;
  EXPECT_EQ(seen[0].load, 2);
  EXPECT_NEAR(seen[0].preference, 0.466921, 1e-6);
  EXPECT_NEAR(seen[0].score, 3 * 0.466921, 1e-5);
  EXPECT_EQ(seen[0].why_not, "");
  EXPECT_THAT(seen[1].why_not, HasSubstr("not available"));
  EXPECT_THAT(seen[2].why_not, HasSubstr("failed"));
  EXPECT_EQ(seen[3].score, 1);
  EXPECT_EQ(choice->picked, 3U);
}

TEST(Peek, OfAPinPicksIt) {
  Workers workers;
  workers.add();
  workers.add(2);
  const auto choice = scheduling::peek(workers.set, pin("b", 1), fleet::no_dice);
  ASSERT_TRUE(choice);
  for (std::size_t i = 0; i < choice->candidates.size(); ++i) {
    const Choice::Candidate& one = choice->candidates[i];
    EXPECT_EQ(one.why_not.empty(), i == choice->picked);
    EXPECT_EQ(i == choice->picked, one.worker->name() == "b" && one.rank == 1U);
  }
}

TEST(Peek, TellsWhatDecided) {
  Workers workers(Policy::LeastLoaded);
  Worker& a = workers.add();
  workers.add();
  const Booking busy(workers.named("a"));
  EXPECT_EQ(scheduling::peek(workers.set, {}, fleet::no_dice)->by, Choice::By::Policy);
  EXPECT_EQ(scheduling::peek(workers.set, {}, fleet::no_dice)->policy, Policy::LeastLoaded);
  EXPECT_EQ(scheduling::peek(workers.set, pin("b"), fleet::no_dice)->by, Choice::By::Name);
  WorkerRequirements requirements;
  requirements.affinity = scheduling::RankId{a.id(), {}};
  EXPECT_EQ(scheduling::peek(workers.set, requirements, fleet::no_dice)->by, Choice::By::Session);
  Choice told;
  ASSERT_TRUE(test::book_worker(workers.set, requirements, fleet::no_dice, &told));
  EXPECT_EQ(told.by, Choice::By::Session);
  EXPECT_EQ(told.policy, Policy::LeastLoaded);
  a.unreachable(fleet::Failure::Unreachable, "gone");
  EXPECT_EQ(scheduling::peek(workers.set, requirements, fleet::no_dice)->by, Choice::By::Policy);
}

// Batches that are bounded by an objective for the time between tokens.

constexpr std::chrono::milliseconds kItl{40};

// The streams of a rank have shown that one request more than so many is too many.
void limit_to(const Worker& worker, std::int64_t most, std::uint32_t rank = 0) {
  scheduling::BatchLimit& limit = worker.batch_limit(rank);
  const fleet::Time now = fleet::Clock::now();
  for (int i = 1; i <= 8; ++i) {
    limit.observe(static_cast<double>(most + 1), 0.01001, 0.01,
                  now + i * std::chrono::milliseconds(100));
  }
  ASSERT_EQ(limit.most(), most);
}

WorkerRequirements part(Part what) {
  WorkerRequirements requirements;
  requirements.part = what;
  return requirements;
}

// A request that would cross no threshold waits for a place only.
WorkerRequirements waiting() {
  WorkerRequirements requirements;
  requirements.busy = BusyThreshold{.tokens = 1'000'000'000, .share = {}};
  return requirements;
}

constexpr Policy kAllPolicies[] = {Policy::RoundRobin,  Policy::Random, Policy::PowerOfTwo,
                                   Policy::LeastLoaded, Policy::Kv,     Policy::LoadAware,
                                   Policy::Ttft};

TEST(FullWorkers, ArePassedOverWhereOthersHavePlaces) {
  for (const Policy policy : kAllPolicies) {
    for (const Part what : {Part::Decode, Part::Both}) {
      Workers workers(policy, Role::Decode, kItl);
      limit_to(workers.add(), 1);
      limit_to(workers.add(), 20);
      workers.add();
      std::vector<Booking> running;
      for (const char* name : {"a", "b", "b", "c", "c"}) running.emplace_back(workers.named(name));
      for (int i = 0; i < 50; ++i)
        EXPECT_NE(workers.booked(part(what)), "a") << model::to_string(policy);
      running.erase(running.begin());
      std::map<std::string, int> counts;
      for (int i = 0; i < 100; ++i) ++counts[workers.booked(part(what))];
      EXPECT_GT(counts["a"], 0) << "it has a place again, " << model::to_string(policy);
    }
  }
}

TEST(FullWorkers, ArePassedOverRankByRank) {
  Workers workers(Policy::RoundRobin, Role::Decode, kItl);
  limit_to(workers.add(2), 1, 1);
  const Booking running(workers.named("a"), 1);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(workers.booked(part(Part::Decode)), "a0");
}

TEST(FullWorkers, GetADecodeLegWhereAllAreFull) {
  for (const Policy policy : kAllPolicies) {
    Workers workers(policy, Role::Decode, kItl);
    std::vector<Booking> running;
    for (const char* name : {"a", "b"}) {
      limit_to(workers.add(), 1);
      running.emplace_back(workers.named(name));
    }
    std::map<std::string, int> counts;
    for (int i = 0; i < 100; ++i) ++counts[workers.booked(part(Part::Decode))];
    EXPECT_EQ(counts["a"] + counts["b"], 100) << model::to_string(policy);
    if (policy == Policy::RoundRobin) EXPECT_EQ(counts["a"], 50) << "their turns go on";
  }
}

TEST(FullWorkers, AreWaitedForByWhoeverMayWaitAndHasNotBegun) {
  for (const Policy policy : kAllPolicies) {
    Workers workers(policy, Role::Aggregated, kItl);
    std::vector<Booking> running;
    for (const char* name : {"a", "b"}) {
      limit_to(workers.add(), 1);
      running.emplace_back(workers.named(name));
    }
    const auto refused = test::book_worker(workers.set, waiting(), fleet::no_dice);
    ASSERT_FALSE(refused) << model::to_string(policy);
    EXPECT_EQ(refused.error().code(), Errc::WorkersBusy);
    EXPECT_TRUE(test::book_worker(workers.set, {}, fleet::no_dice)) << "nobody else waits";
    WorkerRequirements pinned = waiting();
    pinned.pin = Pin{"a", {}};
    EXPECT_THAT(test::book_worker(workers.set, pinned, fleet::no_dice).error(),
                is_error(Errc::WorkersBusy, "busy"));
    pinned.busy.reset();
    EXPECT_TRUE(test::book_worker(workers.set, pinned, fleet::no_dice));
    WorkerRequirements decode = waiting();
    decode.part = Part::Decode;
    EXPECT_TRUE(test::book_worker(workers.set, decode, fleet::no_dice))
        << "a hand-off under way is not given up";
    running.pop_back();
    EXPECT_EQ(workers.booked(waiting()), "b");
  }
}

TEST(FullWorkers, AreWaitedForAlsoWhereRequestsOnlyBindLate) {
  Workers workers(Policy::Ttft, Role::Aggregated, kItl);
  limit_to(workers.add(), 1);
  workers.named("a")->answered();
  WorkerRequirements requirements;
  requirements.busy = BusyThreshold{.tokens = {}, .share = {}, .late = true};
  EXPECT_EQ(workers.booked(requirements), "a");
  const Booking running(workers.named("a"));
  const auto refused = test::book_worker(workers.set, requirements, fleet::no_dice);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::WorkersBusy);
}

TEST(FullWorkers, AreNoneWithoutAnObjectiveAndNoneForAPrefill) {
  for (const auto itl : {std::chrono::milliseconds(0), kItl}) {
    Workers workers(Policy::RoundRobin, Role::Aggregated, itl);
    limit_to(workers.add(), 1);
    workers.add();
    const Booking running(workers.named("a"));
    WorkerRequirements requirements = waiting();
    if (itl > std::chrono::milliseconds(0)) requirements.part = Part::Prefill;
    EXPECT_EQ(
        workers.booked(requirements) + workers.booked(requirements) + workers.booked(requirements),
        "aba");
  }
}

TEST(FullWorkers, ArePassedOverWhateverIsPreferred) {
  for (const Policy policy : kPolicies) {
    Workers workers(policy, Role::Decode, kItl);
    limit_to(workers.add(1, {"near"}), 1);
    workers.add();
    const Booking running(workers.named("a"));
    WorkerRequirements requirements = part(Part::Decode);
    requirements.constraints.preferred = {{"near", 1}};
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(workers.booked(requirements), "b") << model::to_string(policy);
    // One that may not have the request does not matter.
    requirements.excluded = {{2}};
    EXPECT_EQ(workers.booked(requirements), "a") << model::to_string(policy);
  }
}

TEST(FullWorkers, LoseTheirSessionsToOthersWithPlaces) {
  for (const Policy policy : {Policy::RoundRobin, Policy::Kv}) {
    Workers workers(policy, Role::Aggregated, kItl);
    limit_to(workers.add(), 1);
    limit_to(workers.add(), 1);
    const Booking running(workers.named("a"));
    WorkerRequirements session;
    session.affinity = RankId{{1}, {}};
    EXPECT_EQ(workers.booked(session), "b") << model::to_string(policy);
    WorkerRequirements decode = session;
    decode.part = Part::Decode;
    EXPECT_EQ(workers.booked(decode), "a") << model::to_string(policy);
    const Booking other(workers.named("b"));
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(workers.booked(session), "a") << "where all are full, it stays with its cache";
    session.busy = waiting().busy;
    EXPECT_FALSE(test::book_worker(workers.set, session, fleet::no_dice));
  }
}

TEST(FullWorkers, AreToldOf) {
  Workers workers(Policy::RoundRobin, Role::Decode, kItl);
  limit_to(workers.add(), 1);
  workers.add();
  const Booking running(workers.named("a"));
  const auto choice = scheduling::peek(workers.set, part(Part::Decode), fleet::no_dice);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->picked, 1U);
  EXPECT_THAT(choice->candidates[0].why_not, HasSubstr("too late"));
}

TEST(FreePlaces, AreThoseOfAllWorkersThatAreThere) {
  Workers workers(Policy::RoundRobin, Role::Decode, kItl);
  EXPECT_EQ(workers.set.free_places(), std::nullopt) << "nobody is there";
  limit_to(workers.add(), 3);
  EXPECT_EQ(workers.set.free_places(), 3);
  Worker& other = workers.add(2);
  EXPECT_EQ(workers.set.free_places(), std::nullopt) << "who knows";
  limit_to(other, 1, 0);
  EXPECT_EQ(workers.set.free_places(), std::nullopt);
  limit_to(other, 2, 1);
  EXPECT_EQ(workers.set.free_places(), 6);
  std::vector<Booking> running;
  for (int i = 0; i < 3; ++i) running.emplace_back(workers.named("b"), 0U);
  EXPECT_EQ(workers.set.free_places(), 5) << "more than full is full";
  running.emplace_back(workers.named("a"));
  EXPECT_EQ(workers.set.free_places(), 4);
  other.unreachable(fleet::Failure::Unreachable, "gone");
  EXPECT_EQ(workers.set.free_places(), 2);
  workers.named("a")->set_draining(true);
  EXPECT_EQ(workers.set.free_places(), std::nullopt);
}

TEST(FreePlaces, AreUnknownWithoutAnObjective) {
  Workers workers;
  limit_to(workers.add(), 3);
  EXPECT_EQ(workers.set.free_places(), std::nullopt);
}

struct Counting : fleet::LoadListener {
  void load_fell() override { ++rung; }
  int rung = 0;
};

TEST(FreePlaces, AreRungForAtTheEndOfEachStreamUnderAnObjective) {
  for (const auto itl : {std::chrono::milliseconds(0), kItl}) {
    const bool bounded = itl > std::chrono::milliseconds(0);
    const auto load_notifier = std::make_shared<LoadNotifier>();
    const auto listener = std::make_shared<Counting>();
    Workers workers(Policy::RoundRobin, Role::Decode, itl, load_notifier);
    workers.add();
    load_notifier->add(listener);
    for (const Part what : {Part::Decode, Part::Both, Part::Prefill}) {
      auto booking = test::book_worker(workers.set, part(what), fleet::no_dice);
      ASSERT_TRUE(booking);
      booking->prefill_completed();
      listener->rung = 0;
      *booking = Booking();
      EXPECT_EQ(listener->rung, bounded && what != Part::Prefill ? 1 : 0);
      auto of_no_use = test::book_worker(workers.set, part(what), fleet::no_dice);
      of_no_use->withdraw();
      listener->rung = 0;
      *of_no_use = Booking();
      EXPECT_EQ(listener->rung, 0);
    }
  }
}

}  // namespace
}  // namespace baton::scheduling
