// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/class_queues.h"

#include "queue_model.h"

#include <gtest/gtest.h>

#include <deque>
#include <numeric>
#include <random>

namespace baton::scheduling {
namespace {

using config::QueueOrder;

config::QueueClass named(std::string name, QueueOrder order = QueueOrder::Fcfs,
                         std::uint64_t quantum = 1) {
  config::QueueClass made;
  made.name = std::move(name);
  made.order = order;
  made.quantum = quantum;
  made.busy_tokens = 1;
  return made;
}

config::Queue with(std::vector<config::QueueClass> classes) {
  config::Queue made;
  made.classes = std::move(classes);
  return made;
}

Entry of(std::uint64_t tokens, double arrival = 0, std::string bucket = {}) {
  Entry made;
  made.prompt_tokens = tokens;
  made.awaits.what = std::move(bucket);
  made.arrival = at(arrival);
  return made;
}

Entry from(std::string tenant, std::uint64_t tokens, double arrival = 0) {
  Entry made = of(tokens, arrival);
  made.tenant = std::move(tenant);
  return made;
}

struct Line {
  explicit Line(config::Queue config) : queue(config, at(0)) {}

  Ticket add(const Entry& entry, std::size_t policy_class = 0) {
    return *queue.add(policy_class, entry, 1, entry.arrival);
  }
  // Serves everybody, whose turn it is first.
  std::vector<Ticket> drain(double now) {
    std::vector<Ticket> order;
    queue.begin_round(at(now));
    while (const auto ticket = queue.next(at(now))) {
      order.push_back(*ticket);
      queue.taken(*ticket, at(now));
    }
    return order;
  }

  ClassQueues queue;
};

TEST(ClassQueues, FirstComeIsFirstServedAndAJumpIsAnEarlierArrival) {
  Line line(with({named("all")}));
  const Ticket first = line.add(of(10, 1));
  const Ticket second = line.add(of(10, 2));
  Entry jumper = of(10, 4);
  jumper.priority_jump = 2.5;  // as if it had come at 1.5
  const Ticket third = line.add(jumper);
  Entry modest = of(10, 5);
  modest.priority_jump = -100;  // nobody is put back
  const Ticket fourth = line.add(modest);
  const Ticket fifth = line.add(of(10, 6));
  EXPECT_EQ(line.drain(10), (std::vector{first, third, second, fourth, fifth}));
}

TEST(ClassQueues, LastComeCanBeFirstServed) {
  Line line(with({named("all", QueueOrder::Lcfs)}));
  const Ticket first = line.add(of(10, 1));
  const Ticket second = line.add(of(10, 2));
  Entry jumper = of(10, 1.5);
  jumper.priority_jump = 5;
  const Ticket third = line.add(jumper);
  EXPECT_EQ(line.drain(10), (std::vector{third, second, first}));
}

TEST(ClassQueues, WhatTakesLeastGoesFirstButNotForEver) {
  Line line(with({named("all", QueueOrder::Shortest)}));
  const auto taking = [](double seconds, double arrival) {
    Entry entry = of(10, arrival);
    entry.compute_seconds = seconds;
    return entry;
  };
  const Ticket long_one = line.add(taking(3, 0));
  const Ticket short_one = line.add(taking(0.1, 5));
  // Ten seconds of waiting make up for three of computing.
  const Ticket late_short = line.add(taking(0.1, 10));
  Entry urgent = taking(3, 10);
  urgent.priority_jump = 20;
  const Ticket jumper = line.add(urgent);
  EXPECT_EQ(line.drain(20), (std::vector{jumper, short_one, long_one, late_short}));
}

TEST(ClassQueues, ShortestFirstWeighsNewTokensAgainstTheTimeWaited) {
  Line line(with({named("all", QueueOrder::Wspt)}));
  Entry cached = of(1000, 0);
  cached.cached_tokens = 995;
  const Ticket large = line.add(of(100, 0));
  const Ticket small = line.add(cached);
  EXPECT_EQ(line.drain(0), (std::vector{small, large}));

  // (1 + 60) / 100 is more than (1 + 1) / 5.
  const Ticket old = line.add(of(100, 0));
  Entry late = of(5, 59);
  const Ticket young = line.add(late);
  EXPECT_EQ(line.drain(60), (std::vector{old, young}));

  // As if it had come a minute earlier: (1 + 60 + 1) / 5 is more than (1 + 100) / 100.
  const Ticket older = line.add(of(100, 0));
  late.arrival = at(99);
  late.priority_jump = 60;
  const Ticket jumper = line.add(late);
  EXPECT_EQ(line.drain(100), (std::vector{jumper, older}));
}

TEST(ClassQueues, StrictPriorityGoesBeforeEverything) {
  Line line(with({named("all", QueueOrder::Wspt)}));
  const Ticket plain = line.add(from("idle", 1, 0));
  Entry strict = from("busy", 100'000, 5);
  strict.strict_priority = 1;
  const Ticket first = line.add(strict);
  EXPECT_EQ(line.drain(10), (std::vector{first, plain}));
}

TEST(ClassQueues, DoesWhatItsRulesSayWhateverHappens) {
  std::mt19937_64 random(7);
  const auto pick = [&random](std::uint64_t below) { return random() % below; };
  for (int run = 0; run < 60; ++run) {
    config::Queue config = with({});
    const std::size_t classes = 1 + pick(4);
    for (std::size_t i = 0; i < classes; ++i) {
      config.classes.push_back(named(std::to_string(i), static_cast<QueueOrder>(pick(3)),
                                     pick(2) == 0 ? 1 : 1 + pick(300)));
    }
    config.fair_tenants = pick(3) != 0;
    // Few buckets or more than a round can try; and little or much is passed over.
    const std::uint64_t buckets = pick(2) ? 4 : 150;
    const std::uint64_t serving = pick(2) ? 2 : 40;
    const auto awaited = [&] {
      return WaitKey{.what = std::to_string(pick(buckets)), .surely = pick(2) == 0};
    };
    ClassQueues queue(config, at(0));
    QueueModel model(config);
    std::vector<Ticket> all;
    double now = 0;
    for (int step = 0; step < 1500; ++step) {
      now += static_cast<double>(pick(1000)) / 1024;
      const auto what = pick(serving == 2 ? 10 : 40);  // rounds are short, or go on to their end
      if (what < 5) {
        Entry entry = of(pick(4) == 0 ? 0 : pick(500), now);
        entry.awaits = pick(2) ? WaitKey() : awaited();
        entry.cached_tokens = pick(3) == 0 ? pick(entry.prompt_tokens + 10) : 0;
        entry.tenant = std::to_string(pick(4));
        entry.strict_priority = static_cast<std::uint32_t>(pick(8) == 0 ? pick(3) : 0);
        entry.priority_jump = pick(3) == 0 ? static_cast<double>(pick(50)) - 10 : 0;
        const std::size_t policy_class = pick(classes);
        const auto ticket = queue.add(policy_class, entry, 1, at(now));
        ASSERT_TRUE(ticket);
        model.add(*ticket, policy_class, entry, at(now));
        all.push_back(*ticket);
      } else if (what < 6 && !all.empty()) {
        const std::size_t index = pick(all.size());
        queue.remove(all[index], at(now));
        model.remove(all[index]);
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(index));
      } else if (what < 7) {
        queue.begin_round(at(now));
        model.begin_round();
      } else {
        const auto next = queue.next(at(now));
        ASSERT_EQ(next, model.next(at(now))) << "run " << run << ", step " << step;
        if (!next) continue;
        if (pick(serving) != 0) {
          const WaitKey told = pick(2) ? WaitKey() : awaited();
          queue.pass(*next, told, at(now));
          model.pass(*next, told, at(now));
        } else {
          queue.taken(*next, at(now));
          model.taken(*next);
          std::erase(all, *next);
        }
      }
      ASSERT_EQ(queue.size(), all.size());
    }
  }
}

TEST(ClassQueues, ClassesShareByTheirQuanta) {
  const std::vector<std::uint64_t> quanta{100, 300, 600};
  Line line(with({named("a", QueueOrder::Fcfs, 100), named("b", QueueOrder::Wspt, 300),
                  named("c", QueueOrder::Lcfs, 600)}));
  std::mt19937_64 random(1);
  std::unordered_map<Ticket, std::pair<std::size_t, std::uint64_t>> what;
  const auto add = [&](std::size_t policy_class, double now) {
    const std::uint64_t tokens = 1 + random() % 900;
    what[line.add(of(tokens, now), policy_class)] = {policy_class, tokens};
  };
  for (int i = 0; i < 30; ++i) add(static_cast<std::size_t>(i % 3), 0);
  std::vector<double> served(3);
  for (int i = 1; i < 30'000; ++i) {
    // A worker has time for one at a time: a round serves one and then all find it busy.
    const double now = i * 0.01;
    line.queue.begin_round(at(now));
    const Ticket ticket = *line.queue.next(at(now));
    const auto [policy_class, tokens] = what[ticket];
    line.queue.taken(ticket, at(now));
    served[policy_class] += static_cast<double>(tokens);
    while (const auto busy = line.queue.next(at(now))) line.queue.pass(*busy, {}, at(now));
    add(policy_class, now);
  }
  const double all = std::accumulate(served.begin(), served.end(), 0.0);
  for (std::size_t i = 0; i < 3; ++i) {
    const double share = static_cast<double>(quanta[i]) / 1000;
    EXPECT_NEAR(served[i] / all, share, 0.01 * share) << i;
  }
}

TEST(ClassQueues, AClassThatEmptiesLosesWhatItHadNotSpent) {
  Line line(with({named("a", QueueOrder::Fcfs, 100), named("b", QueueOrder::Fcfs, 100)}));
  const Ticket a1 = line.add(of(10), 0);
  EXPECT_EQ(line.drain(0), std::vector{a1});  // and 90 are left, for nobody
  // It is the turn of a still, which has had its quantum: b comes first.
  const Ticket a2 = line.add(of(100), 0);
  const Ticket b1 = line.add(of(100), 1);
  EXPECT_EQ(line.drain(1), (std::vector{b1, a2}));
}

TEST(ClassQueues, NobodyWaitsBehindOneWhoseWorkerIsBusy) {
  Line line(with({named("all")}));
  std::vector<Ticket> pinned;
  for (int i = 0; i < 1000; ++i) pinned.push_back(line.add(of(10, 0, "worker 1")));
  const Ticket alone = line.add(of(10, 1));
  const Ticket last = line.add(of(10, 2, "worker 2"));
  line.queue.begin_round(at(3));
  EXPECT_EQ(line.queue.next(at(3)), pinned[0]);
  line.queue.pass(pinned[0], {}, at(3));
  EXPECT_TRUE(line.queue.passed(pinned[999]));
  EXPECT_EQ(line.queue.next(at(3)), alone);
  line.queue.pass(alone, {}, at(3));
  EXPECT_EQ(line.queue.next(at(3)), last);
  line.queue.taken(last, at(3));
  EXPECT_EQ(line.queue.next(at(3)), std::nullopt);
  // They have kept their places.
  line.queue.begin_round(at(4));
  EXPECT_EQ(line.queue.next(at(4)), pinned[0]);
}

// A request that learns nothing new when it is tried keeps its limit.
TEST(ClassQueues, AWaitForOthersEndsAlsoAfterATryThatSaidNothing) {
  Line line(with({named("all")}));
  const auto follow = [&line](double until, std::uint32_t strict_priority) {
    Entry entry = of(10);
    entry.awaits = {.what = "leader", .surely = true};
    entry.until = at(until);
    entry.strict_priority = strict_priority;
    return line.add(entry);
  };
  const Ticket early = follow(10, 0);
  line.queue.begin_round(at(5));
  EXPECT_EQ(line.queue.next(at(5)), early);
  line.queue.pass(early, {}, at(5));
  const Ticket better = follow(100, 1);
  for (const double now : {9.0, 11.0}) {
    line.queue.begin_round(at(now));
    EXPECT_EQ(line.queue.next(at(now)), better);
    line.queue.pass(better, {.what = "leader", .surely = true}, at(now), at(100));
    const auto next = line.queue.next(at(now));
    EXPECT_EQ(next, now < 10 ? std::nullopt : std::optional(early)) << now;
  }
}

TEST(ClassQueues, WhoWaitsForNobodyHasNoLimit) {
  Line line(with({named("all")}));
  Entry entry = of(10);
  entry.until = at(10);
  const Ticket only = line.add(entry);
  line.queue.begin_round(at(11));
  EXPECT_EQ(line.queue.next(at(11)), only);
}

// Passes over whoever is offered a turn, until nobody is; each says what it waits for.
template <class Waits>
std::vector<Ticket> pass_all(ClassQueues& queue, double now, Waits waits_for) {
  std::vector<Ticket> tried;
  queue.begin_round(at(now));
  while (const auto ticket = queue.next(at(now))) {
    tried.push_back(*ticket);
    queue.pass(*ticket, waits_for(*ticket), at(now));
  }
  return tried;
}

WaitKey rank(std::uint64_t number) {
  return {.what = "rank " + std::to_string(number), .surely = false};
}

TEST(ClassQueues, ARoundPassesOverABoundedNumberAndHalfOfThemNewcomers) {
  Line line(with({named("all")}));
  for (int i = 0; i < 1000; ++i) line.add(of(10, i));
  std::set<Ticket> in_buckets;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    Entry entry = of(10, 1000);
    entry.awaits = rank(i);
    in_buckets.insert(line.add(entry));
  }
  const auto tried = pass_all(line.queue, 2000, [](Ticket) { return WaitKey(); });
  EXPECT_EQ(tried.size(), ClassQueues::kInOrder + ClassQueues::kByAge);
  EXPECT_EQ(std::ranges::count_if(tried, [&](Ticket one) { return in_buckets.contains(one); }),
            std::ptrdiff_t{(ClassQueues::kInOrder + ClassQueues::kByAge) / 2});
}

TEST(ClassQueues, OneIsTriedForAllWhoWaitForTheSame) {
  Line line(with({named("all")}));
  std::vector<Ticket> fans;
  for (int i = 0; i < 1000; ++i) fans.push_back(line.add(of(10, i)));
  const auto their_rank = [](Ticket) { return rank(1); };
  // Until all of them have been told.
  for (std::size_t round = 0; round < fans.size() / ClassQueues::kByAge; ++round)
    pass_all(line.queue, 1000, their_rank);
  const Ticket behind = line.add(of(10, 1001));
  line.queue.begin_round(at(1002));
  EXPECT_EQ(line.queue.next(at(1002)), fans[0]);
  line.queue.pass(fans[0], rank(1), at(1002));
  EXPECT_EQ(line.queue.next(at(1002)), behind);
  // Who else waits for that rank may think otherwise by now, but comes after the first of each bucket.
  line.queue.pass(behind, rank(2), at(1002));
  EXPECT_EQ(line.queue.next(at(1002)), fans[1]);
  // Who has another favourite now does not stand for those he leaves.
  line.queue.pass(fans[1], rank(2), at(1002));
  EXPECT_EQ(line.queue.next(at(1002)), fans[2]);
  line.queue.taken(fans[2], at(1002));
  line.queue.begin_round(at(1003));
  EXPECT_EQ(line.queue.next(at(1003)), fans[0]);
  line.queue.pass(fans[0], rank(1), at(1003));
  EXPECT_EQ(line.queue.next(at(1003)), fans[1]);  // the first of the other bucket, now
}

TEST(ClassQueues, EachBucketHasItsTurnHoweverManyAreBeforeIt) {
  constexpr std::uint64_t kBuckets = 500;
  Line line(with({named("a"), named("b")}));
  std::map<Ticket, std::uint64_t> waits_for;
  for (std::uint64_t i = 0; i < 3 * kBuckets; ++i) {
    const Ticket ticket = line.add(of(10, static_cast<double>(i)), i % 2);
    waits_for[ticket] = i % kBuckets;
  }
  const auto told = [&](Ticket ticket) { return rank(waits_for[ticket]); };
  double now = 2000;
  for (int round = 0; round < 200; ++round) pass_all(line.queue, ++now, told);
  // All know what they wait for. In so many rounds somebody is tried for each rank.
  std::set<std::uint64_t> tried;
  for (std::uint64_t round = 0; round <= 2 * kBuckets / ClassQueues::kByAge; ++round) {
    for (const Ticket ticket : pass_all(line.queue, ++now, told)) tried.insert(waits_for[ticket]);
  }
  EXPECT_EQ(tried.size(), kBuckets);
}

TEST(ClassQueues, ABusyFavouriteOfOneClassLeavesTriesToTheOthers) {
  Line line(with({named("a", QueueOrder::Fcfs, 1000), named("b", QueueOrder::Fcfs, 1)}));
  for (int i = 0; i < 200; ++i) {
    Entry entry = of(1, i);
    entry.awaits = rank(1);
    line.add(entry, 0);
  }
  Entry other = of(1, 300);
  other.awaits = rank(2);
  const Ticket of_b = line.add(other, 1);
  line.queue.begin_round(at(400));
  line.queue.pass(*line.queue.next(at(400)), rank(1), at(400));
  EXPECT_EQ(line.queue.next(at(400)), of_b);
}

TEST(ClassQueues, ABusyClassHasItsTurnWhenItsWorkersHaveTime) {
  Line line(with({named("a", QueueOrder::Fcfs, 10), named("b", QueueOrder::Fcfs, 10)}));
  std::vector<Ticket> a;
  std::vector<Ticket> b;
  for (int i = 0; i < 100; ++i) a.push_back(line.add(of(10, 0, "a"), 0));
  for (int i = 0; i < 100; ++i) b.push_back(line.add(of(10, 0, "b"), 1));
  // The workers of a are busy for a long time.
  for (std::size_t i = 0; i < 50; ++i) {
    line.queue.begin_round(at(1));
    while (const auto ticket = line.queue.next(at(1))) {
      if (*ticket == b[i]) {
        line.queue.taken(*ticket, at(1));
        break;
      }
      EXPECT_EQ(*ticket, a[0]);
      line.queue.pass(*ticket, {}, at(1));
    }
  }
  // Then they take turns: it has not been saving up meanwhile.
  std::vector<Ticket> order = line.drain(2);
  std::size_t of_a = 0;
  for (std::size_t i = 0; i < 20; ++i) of_a += std::ranges::count(a, order[i]) > 0 ? 1 : 0;
  EXPECT_GE(of_a, 9U);
  EXPECT_LE(of_a, 12U);
}

TEST(ClassQueues, TenantsAreServedTheSameNumberOfTokens) {
  Line line(with({named("all", QueueOrder::Fcfs)}));
  std::mt19937_64 random(3);
  std::unordered_map<Ticket, Entry> entries;
  const auto add = [&](const std::string& tenant, double now) {
    const Entry entry = from(tenant, tenant == "large" ? 500 + random() % 1000 : 20, now);
    entries[line.add(entry)] = entry;
  };
  for (int i = 0; i < 1000; ++i) add("many", 0);
  for (int i = 0; i < 10; ++i) add("few", 1);
  for (int i = 0; i < 10; ++i) add("large", 2);
  std::map<std::string, double> served;
  for (int i = 0; i < 20'000; ++i) {
    const double now = 3 + i;
    line.queue.begin_round(at(now));
    const Ticket ticket = *line.queue.next(at(now));
    const Entry entry = entries[ticket];
    line.queue.taken(ticket, at(now));
    served[entry.tenant] += static_cast<double>(entry.prompt_tokens);
    add(entry.tenant, now);
  }
  EXPECT_NEAR(served["many"] / served["few"], 1, 0.01);
  EXPECT_NEAR(served["large"] / served["few"], 1, 0.02);  // within one of its requests
}

TEST(ClassQueues, AnAbsentTenantSavesUpNothing) {
  Line line(with({named("all")}));
  for (int i = 0; i < 1000; ++i) line.add(from("there", 10, i));
  for (int i = 0; i < 500; ++i) {
    line.queue.begin_round(at(1000));
    line.queue.taken(*line.queue.next(at(1000)), at(1000));
  }
  std::set<Ticket> back;
  for (int i = 0; i < 500; ++i) back.insert(line.add(from("back", 10, 1001)));
  const std::vector<Ticket> order = line.drain(1002);
  std::size_t first_hundred = 0;
  for (std::size_t i = 0; i < 100; ++i) first_hundred += back.contains(order[i]) ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(first_hundred), 50, 1);
}

TEST(ClassQueues, WhoLeavesWithADebtComesBackWithIt) {
  Line line(with({named("all")}));
  const Ticket huge = line.add(from("greedy", 1000, 0));
  std::vector<Ticket> modest;
  for (int i = 0; i < 200; ++i) modest.push_back(line.add(from("modest", 10, 1)));
  line.queue.begin_round(at(2));
  EXPECT_EQ(line.queue.next(at(2)), huge);
  line.queue.taken(huge, at(2));
  const Ticket again = line.add(from("greedy", 10, 2));
  const std::vector<Ticket> order = line.drain(3);
  // After 1000 tokens of the other, and one more: at a tie, who came first.
  EXPECT_EQ(std::ranges::find(order, again) - order.begin(), 101);
}

TEST(ClassQueues, ShortestFirstLeavesNobodyBehind) {
  Line line(with({named("all", QueueOrder::Wspt)}));
  const Ticket huge = line.add(of(10'000, 0));
  double now = 0;
  for (int i = 0; i < 40; ++i) line.add(of(100, now));
  // Small ones come as fast as they are served, each having waited four seconds when it is.
  while (true) {
    now += 0.1;
    line.add(of(100, now));
    line.queue.begin_round(at(now));
    const Ticket next = *line.queue.next(at(now));
    line.queue.taken(next, at(now));
    if (next == huge) break;
    ASSERT_LT(now, 1000);
  }
  // As soon as it has waited a hundred times as long as they have.
  EXPECT_GT(now, 300);
  EXPECT_LT(now, 550);
}

TEST(ClassQueues, WhoWouldCrossALimitIsRefused) {
  config::QueueClass limited = named("limited");
  limited.requests_per_worker = 3;
  limited.tokens_per_worker = 100;
  limited.cached_tokens_per_worker = 30;
  ClassQueues queue(with({limited}), at(0));
  const auto add = [&](std::uint64_t tokens, std::uint64_t cached, std::size_t workers = 2) {
    Entry entry = of(tokens);
    entry.cached_tokens = cached;
    return queue.add(0, entry, workers, at(0));
  };
  ASSERT_TRUE(add(150, 20));
  EXPECT_EQ(add(51, 0).error(), (Refusal{"limited", LimitKind::RawIslTokens, 150, 200, 51}));
  EXPECT_EQ(add(50, 41).error(), (Refusal{"limited", LimitKind::CachedTokens, 20, 60, 41}));
  ASSERT_TRUE(add(50, 40));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(add(0, 0));
  EXPECT_EQ(add(0, 0).error(), (Refusal{"limited", LimitKind::Requests, 6, 6, 1}));
  // Fewer workers than before: nobody is sent away, and nobody more is let in.
  EXPECT_EQ(add(0, 0, 1).error(), (Refusal{"limited", LimitKind::Requests, 6, 3, 1}));
  EXPECT_EQ(queue.totals(0), (Totals{6, 200, 60, 140}));
}

TEST(ClassQueues, WhatIsLargerThanALimitMayNotWaitEvenAlone) {
  config::QueueClass limited = named("limited");
  limited.tokens_per_worker = 100;
  ClassQueues queue(with({limited}), at(0));
  EXPECT_EQ(queue.add(0, of(5000), 1, at(0)).error(),
            (Refusal{"limited", LimitKind::RawIslTokens, 0, 100, 5000}));
  ASSERT_TRUE(queue.add(0, of(5000), 50, at(0)));
}

TEST(ClassQueues, TellsWhatIsBeforeOneWhoComes) {
  for (const bool fair : {true, false}) {
    config::Queue config = with({named("a")});
    config.fair_tenants = fair;
    ClassQueues queue(config, at(0));
    const auto before = [&](std::string tenant) {
      Entry entry = of(5);
      entry.tenant = std::move(tenant);
      return queue.before(0, entry);
    };
    EXPECT_EQ(before("x"), Work());
    const auto add = [&](const std::string& tenant, double seconds) {
      Entry entry = of(100);
      entry.tenant = tenant;
      entry.compute_seconds = seconds;
      return *queue.add(0, entry, 1, at(0));
    };
    add("flood", 2);
    const Ticket second = add("flood", 2);
    EXPECT_EQ(before("flood"), (Work{200, 4}));
    EXPECT_EQ(before("x"), (fair ? Work{5, 0.1} : Work{200, 4}))
        << "until both have been served as much";
    // Shares are of tokens, however long those of each take.
    add("x", 8);
    EXPECT_EQ(before("x"), (fair ? Work{205, 8 + 2.1} : Work{300, 12}));
    queue.remove(second, at(0));
    EXPECT_EQ(before("flood"), (Work{200, 10})) << "no more than waits";
  }
}

// A twentieth of a second is as fine as it is told.
TEST(ClassQueues, WhatAShorterOneOvertakesIsNotBeforeIt) {
  for (const QueueOrder order : {QueueOrder::Shortest, QueueOrder::Fcfs}) {
    const bool overtakes = order == QueueOrder::Shortest;
    ClassQueues queue(with({named("a", order)}), at(0));
    const auto taking = [](double seconds, double arrival) {
      Entry entry = of(100, arrival);
      entry.compute_seconds = seconds;
      return entry;
    };
    const Ticket early = *queue.add(0, taking(3, 0), 1, at(0));
    for (int i = 0; i < 4; ++i) queue.add(0, taking(2, 9), 1, at(9));
    // Ten seconds of waiting make up for three of computing.
    EXPECT_EQ(queue.before(0, taking(0.1, 9)), (overtakes ? Work() : Work{500, 11}));
    EXPECT_EQ(queue.before(0, taking(0.1, 11)), (overtakes ? Work{100, 3} : Work{500, 11}));
    EXPECT_EQ(queue.before(0, taking(3, 11)), (Work{500, 11}));
    Entry urgent = taking(0.1, 11);
    urgent.priority_jump = 5;
    EXPECT_EQ(queue.before(0, urgent), (overtakes ? Work() : Work{500, 11}));
    queue.remove(early, at(11));
    EXPECT_EQ(queue.before(0, taking(0.1, 11)), (overtakes ? Work() : Work{400, 8}));
    Entry first = taking(5, 11);
    first.strict_priority = 1;
    queue.add(0, first, 1, at(11));
    EXPECT_EQ(queue.before(0, taking(0.1, 11)), (overtakes ? Work{100, 5} : Work{500, 13}));
  }
}

TEST(ClassQueues, ACrowdIsServedAndForgotten) {
  constexpr std::size_t kCrowd = 20'000;
  Line line(with({named("a", QueueOrder::Wspt, 100), named("b", QueueOrder::Fcfs, 100)}));
  std::mt19937_64 random(5);
  for (std::size_t i = 0; i < kCrowd; ++i) {
    Entry entry = from("tenant " + std::to_string(random() % 10'000), 1 + random() % 2000,
                       static_cast<double>(i) / 1000);
    if (i % 3 != 0) entry.awaits.what = std::to_string(random() % 50);
    line.add(entry, i % 2);
  }
  EXPECT_EQ(line.queue.size(), kCrowd);
  EXPECT_EQ(line.drain(200).size(), kCrowd);
  EXPECT_EQ(line.queue.size(), 0U);
  EXPECT_EQ(line.queue.totals(0), Totals());
}

}  // namespace
}  // namespace baton::scheduling
