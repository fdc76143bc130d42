// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/routing.h"
#include "scheduling/queue/kinetic_tournament.h"
#include "scheduling/queue/work.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace baton::scheduling {

// The resource a request waits for. Those of a class that wait for the same form a bucket: the first
// of them is tried for all.
struct WaitKey {
  std::string what;  // empty: not known yet
  // True if one request's busy holds for all others; else the result may have changed for them.
  bool surely = true;
  bool operator==(const WaitKey&) const = default;
};

struct WaitKeyHash {
  std::size_t operator()(const WaitKey& awaited) const {
    return std::hash<std::string>()(awaited.what) + (awaited.surely ? 1 : 0);
  }
};

// Role. The order of the requests that wait in one class: strict priority, then the tenant that was
//   served the fewest tokens, then the score, then arrival. And the candidates for a try in this
//   round: the first of each bucket, then the second of those whose result may have changed, and so
//   on; a request whose resource is unknown (a newcomer) is tried alone.
// Confinement. None of its own: its owner locks.
// Invariants. A request that is passed over keeps its place. A tenant that comes (back) starts
//   level with the least served waiting tenant: it gets nothing for its absence, and keeps its
//   debt. Nothing is remembered of a class without waiting requests. The cost of a round does not
//   grow with the number of buckets, but with the buckets that a tenant has requests in when it is
//   served.
// Size. Many methods, as buckets, tenants and the order within them change together with each
//   request that comes or goes: their invariants are of one class.
class ClassQueue {
 public:
  struct Line;
  struct Bucket;
  static constexpr std::int64_t kBehind = -1;

  // A waiting request, as its class sees it. Times are seconds since the queue's beginning.
  struct Member {
    std::uint64_t ticket = 0;          // they ascend as requests come
    std::int64_t strict_priority = 0;  // kBehind: after all others
    double jump = 0;
    double arrival = 0;
    double cost = 1;       // tokens to compute
    double seconds = 0;    // that takes
    double by = kForever;  // a worker that it gets later is too late for its objective
    // From then on it no longer waits for its bucket's key; as of its last try.
    double until = kForever;
    config::QueueOrder order = config::QueueOrder::Fcfs;

    double score(double now) const;
    double settle(double) const { return kForever; }
    bool ahead_of(const Member& other, double now) const;
    double overtaken_by(const Member& other, double now) const;
    Work work() const { return {.tokens = cost, .seconds = seconds}; }

    std::size_t slot = 0;
    Line* line = nullptr;
    bool aside = false;                     // passed over in this round, alone
    double tried = 0;                       // a newcomer: when it was last, or came
    std::list<Member*>::iterator age = {};  // a newcomer: its place among those
  };

  explicit ClassQueue(config::QueueOrder order);
  ~ClassQueue();
  ClassQueue(ClassQueue&&) noexcept;

  // The member's address must not change until it leaves.
  void add(Member& member, const std::string& tenant, const WaitKey& awaited, double now);
  // It leaves without having been served.
  void remove(Member& member, double now);
  // It leaves, and its cost counts as served to its tenant.
  void serve(Member& member, double now);

  // The first that has not been passed over in this round; null where there is none.
  Member* first(double now);
  // The longest untried of the requests not tried in this round: the first of a bucket, or a
  // newcomer. `tried` says since when.
  struct Untried {
    Member* member = nullptr;  // null: there is none
    double since = 0;
  };
  Untried longest_untried_bucket(double now);
  Untried longest_untried_newcomer() const;
  // Not tried again in this round; if `awaited` equals what it waits for already, or is empty,
  // neither are the others that surely wait for the same. Else it waits for that from now on, until
  // `until`: in the first round after that the bucket's first request is a newcomer again.
  void pass(Member& member, const WaitKey& awaited, double now, double until = kForever);
  // Newcomers are no longer first in this round.
  void bar_newcomers(double now);
  // It is known to find its workers busy, as of this round.
  bool passed(const Member& member) const;
  bool newcomer(const Member& member) const;
  // How many of its bucket have been passed over in this round, each tried alone.
  std::size_t passes_before(const Member& member) const;
  void begin_round(double now);

  std::size_t size() const { return size_; }
  // The work served before a new request of that tenant: all that its tenant has waiting, and of
  // each other tenant as many tokens as that and itself. With QueueOrder::Shortest, only requests
  // that would run first.
  Work before(const std::string& tenant, const Member& newcomer) const;
  // Seconds until so much work of this class is served.
  using Forecast = std::function<double(const Work& before)>;
  // With QueueOrder::Shortest: by how much its jump must be reduced, so that it overtakes no request
  // of its tenant that it would make late. 0: it may keep its place.
  double delay(const std::string& tenant, const Member& newcomer, double now,
               const Forecast& forecast) const;

 private:
  struct Tenant;

  Tenant& tenant(const std::string& name);
  // The work of that tenant, and of each other one what is served meanwhile.
  Work shared(const Tenant* tenant, const Work& own, double newcomer_cost) const;
  Line& line_of(Tenant& owner, const WaitKey& said, double now);
  void enter(Member& member, Line& line, double now);
  void leave_line(Member& member);
  void take_out(Member& member, double now);
  void race(Member& member, double now);
  void withdraw(Member& member, double now);
  void put_aside(Member& member, double now);
  void wait_until(Member& member, double until);
  // Requires: it does not race.
  void move(Member& member, const WaitKey& awaited, double now);
  // The bucket's first request may have changed, or the bucket may be empty.
  void refresh(Bucket& bucket, double now);
  void tried(Bucket& bucket, double now);
  void close(Bucket& bucket, double now);
  void charge(Tenant& tenant, double cost, double now);
  void dismiss(Tenant& tenant);

  config::QueueOrder order_;
  std::size_t size_ = 0;
  Work waiting_;
  std::uint64_t round_ = 1;
  std::unordered_map<WaitKey, std::unique_ptr<Bucket>, WaitKeyHash> buckets_;
  KineticTournament<Bucket> race_;      // those with a request to try
  std::list<Bucket*> buckets_by_age_;   // but that of newcomers: the longest untried first
  std::list<Member*> newcomers_;        // likewise
  std::vector<Bucket*> tried_buckets_;  // in this round, or closed
  std::unordered_map<std::string, std::unique_ptr<Tenant>> tenants_;  // those with waiting requests
  std::multiset<double> counters_;                                    // of those
  std::unordered_map<std::string, double> debts_;  // of some tenants that do not wait now
  std::vector<Member*> aside_;
  std::set<std::pair<double, Member*>> until_;  // members whose WaitKey expires
};

}  // namespace baton::scheduling
