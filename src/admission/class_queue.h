// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "admission/tournament.h"
#include "config/routing.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace baton::admission {

// Role. The order of those who wait in one class: strict priority, then the tenant that has been
//   served the fewest tokens, then the score, then who came first. And who of them is worth a try
//   in this round.
// Confinement. None of its own: its owner locks.
// Invariants. Who is passed over keeps its place. A tenant that comes (back) starts where the least
//   served of those who wait is: it gets nothing for the time it was away, and owes what it owed.
//   Nothing is remembered of a class where nobody waits.
class ClassQueue {
 public:
  struct Line;
  struct Lane;

  // One who waits, as its class sees it. Times are seconds since the queue's beginning.
  struct Member {
    std::uint64_t ticket = 0;  // they ascend as requests come
    std::uint32_t strict_priority = 0;
    double jump = 0;
    double arrival = 0;
    double cost = 1;     // tokens to compute
    double seconds = 0;  // that takes
    config::QueueOrder order = config::QueueOrder::Fcfs;

    double score(double now) const;
    double settle(double) const { return kForever; }
    bool ahead_of(const Member& other, double now) const;
    double overtaken_by(const Member& other, double now) const;

    std::size_t slot = 0;
    Line* line = nullptr;
    bool aside = false;  // passed over in this round, alone
  };

  explicit ClassQueue(config::QueueOrder order);
  ~ClassQueue();
  ClassQueue(ClassQueue&&) noexcept;

  // The member stays where it is in memory until it leaves.
  void add(Member& member, const std::string& tenant, const std::string& lane, double now);
  // It leaves without having been served.
  void remove(Member& member, double now);
  // It leaves, and its tenant has been served what it costs.
  void serve(Member& member, double now);

  // The first that has not been passed over in this round; null where there is none.
  Member* first(double now);
  // Not in this round again, and all of its lane likewise.
  void pass(Member& member, double now);
  bool passed(const Member& member) const;
  void begin_round(double now);

  std::size_t size() const { return size_; }

 private:
  struct Tenant;

  Tenant& tenant(const std::string& name);
  void take_out(Member& member, double now);
  void race(Member& member, double now);
  void withdraw(Member& member, double now);
  void charge(Tenant& tenant, double cost, double now);
  void dismiss(Tenant& tenant);

  config::QueueOrder order_;
  std::size_t size_ = 0;
  std::uint64_t round_ = 1;
  std::unordered_map<std::string, std::unique_ptr<Lane>> lanes_;
  std::unordered_map<std::string, std::unique_ptr<Tenant>> tenants_;  // those who wait
  std::multiset<double> counters_;                                    // of those
  std::unordered_map<std::string, double> debts_;  // counters of some who do not wait now
  std::vector<Member*> aside_;
};

}  // namespace baton::admission
