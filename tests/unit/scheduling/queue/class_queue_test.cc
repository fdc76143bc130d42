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
