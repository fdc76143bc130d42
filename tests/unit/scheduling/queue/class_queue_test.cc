// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/class_queue.h"

#include <gtest/gtest.h>

#include <list>
#include <random>
#include <string>

namespace baton::scheduling {
namespace {

using config::QueueOrder;
using Member = ClassQueue::Member;

Member of(std::uint64_t ticket, double arrival, double cost) {
  Member made;
  made.ticket = ticket;
  made.arrival = arrival;
  made.cost = cost;
  return made;
}

// Costs and times are small whole numbers, so that many meet exactly.
TEST(ClassQueue, KnowsWhoIsFirstWhileTimePasses) {
  std::mt19937_64 random(11);
  ClassQueue queue(QueueOrder::Wspt);
  std::list<Member> members;
  double now = 0;
  for (std::uint64_t ticket = 1; ticket < 20'000; ++ticket) {
    if (members.size() < 5 || random() % 2 == 0) {
      Member& member =
          members.emplace_back(of(ticket, now, 1 + static_cast<double>(random() % 20)));
      member.jump = static_cast<double>(random() % 4);
      member.order = QueueOrder::Wspt;
      queue.add(member, "", {}, now);
    } else if (random() % 3 == 0) {
      const auto gone = std::next(members.begin(), static_cast<std::ptrdiff_t>(random() % 5));
      queue.remove(*gone, now);
      members.erase(gone);
    } else {
      const Member* best = &members.front();
      for (const Member& member : members) {
        const double score = (1 + member.jump + now - member.arrival) / member.cost;
        const double most = (1 + best->jump + now - best->arrival) / best->cost;
        if (score > most || (score == most && member.ticket < best->ticket)) best = &member;
      }
      Member* first = queue.first(now);
      ASSERT_EQ(first, best) << ticket;
      queue.serve(*first, now);
      members.remove_if([first](const Member& member) { return &member == first; });
    }
    now += static_cast<double>(random() % 3);
    ASSERT_EQ(queue.size(), members.size());
  }
  for (Member& member : members) queue.remove(member, now);
  EXPECT_EQ(queue.first(now), nullptr);
}

TEST(ClassQueue, WhoIsPassedOverAloneComesBackAtItsPlace) {
  ClassQueue queue(QueueOrder::Fcfs);
  Member first = of(1, 0, 1);
  Member second = of(2, 1, 1);
  queue.add(first, "", {}, 1);
  queue.add(second, "", {}, 1);
  queue.pass(first, {}, 1);
  EXPECT_TRUE(queue.passed(first));
  EXPECT_FALSE(queue.passed(second));
  EXPECT_EQ(queue.first(1), &second);
  queue.pass(second, {}, 1);
  EXPECT_EQ(queue.first(1), nullptr);
  queue.begin_round(2);
  EXPECT_EQ(queue.first(2), &first);
  queue.pass(first, {}, 2);
  queue.remove(first, 2);  // aside as it is
  queue.begin_round(3);
  EXPECT_EQ(queue.first(3), &second);
  queue.remove(second, 3);
}

// One worker serves the queue, and forecasts are exact. A request is added only if its own forecast
// is in time.
TEST(ClassQueue, ShorterRequestsMakeNoneLateThatWasInTime) {
  std::mt19937_64 random(5);
  const auto between = [&random](double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random);
  };
  ClassQueue queue(QueueOrder::Shortest);
  std::list<Member> members;
  std::size_t refused = 0, served = 0, overtakes = 0;
  double now = 0, free_at = 0;
  for (std::uint64_t ticket = 1; ticket < 20'000; ++ticket) {
    now += between(0, 0.15);  // more than can be served
    while (free_at <= now && queue.size() > 0) {
      Member& first = *queue.first(free_at);
      ASSERT_LE(free_at, first.by + 1e-9) << first.ticket;
      for (const Member& other : members) overtakes += other.ticket < first.ticket ? 1 : 0;
      free_at += first.seconds;
      queue.serve(first, free_at);
      members.remove_if([&](const Member& member) { return &member == &first; });
      ++served;
    }
    free_at = std::max(free_at, now);
    Member made = of(ticket, now, 1);
    made.seconds = random() % 4 == 0 ? between(0.2, 0.6) : between(0.01, 0.1);
    made.cost = 1000 * made.seconds;
    made.by = now + between(0.1, 2);
    made.order = QueueOrder::Shortest;
    const auto wait = [&](const Work& before) { return free_at - now + before.seconds; };
    made.jump = -queue.delay("", made, now, wait);
    if (now + wait(queue.before("", made)) > made.by) {
      ++refused;
      continue;
    }
    queue.add(members.emplace_back(made), "", {}, now);
  }
  EXPECT_GT(served, 8'000U);
  EXPECT_GT(refused, 2'000U);
  EXPECT_GT(overtakes, 2'000U) << "shorter requests still go first";
  for (Member& member : members) queue.remove(member, now);
}

TEST(ClassQueue, AShorterRequestOvertakesWhereNoneIsDue) {
  ClassQueue queue(QueueOrder::Shortest);
  Member longer = of(1, 0, 1000);
  longer.seconds = 1;
  queue.add(longer, "", {}, 0);
  Member shorter = of(2, 0, 10);
  shorter.order = QueueOrder::Shortest;
  shorter.seconds = 0.01;
  const auto slow = [](const Work& before) { return 100 * before.seconds; };
  EXPECT_EQ(queue.delay("", shorter, 0, slow), 0);
  EXPECT_EQ(queue.delay("another", shorter, 0, slow), 0);
  queue.remove(longer, 0);
  longer.by = 0.5;
  queue.add(longer, "", {}, 0);
  EXPECT_GT(queue.delay("", shorter, 0, slow), 0);
  shorter.strict_priority = 1;
  EXPECT_EQ(queue.delay("", shorter, 0, slow), 0) << "an operator's word goes first";
  queue.remove(longer, 0);
}

TEST(ClassQueue, ForgivesDebtsRatherThanRememberAllTenants) {
  ClassQueue queue(QueueOrder::Fcfs);
  // One tenant always waits; each of many others is served once and leaves with a debt.
  Member resident = of(1, 0, 1);
  queue.add(resident, "resident", {}, 0);
  constexpr std::uint64_t kMany = 20'000;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    Member visitor = of(i + 2, 1, 100);
    queue.add(visitor, "visitor " + std::to_string(i), {}, 1);
    queue.serve(visitor, 1);
  }
  // The last of them owes, the first no more.
  Member last = of(kMany + 2, 0, 1);
  Member early = of(kMany + 3, 1, 1);
  queue.add(last, "visitor " + std::to_string(kMany - 1), {}, 1);
  queue.add(early, "visitor 0", {}, 1);
  queue.serve(*queue.first(1), 1);  // the resident
  EXPECT_EQ(queue.first(1), &early);
  queue.remove(last, 1);
  queue.remove(early, 1);
}

}  // namespace
}  // namespace baton::scheduling
