// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/class_queue.h"

#include "scheduling/policy/forecast.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

namespace baton::scheduling {
namespace {

using config::QueueOrder;

// A match is played again this much before its time: the computed time may be wrong in its last
// digits.
constexpr double kSlack = 1e-6;
constexpr std::size_t kMostDebts = 4096;
// In one round: more would not be tried in it.
constexpr std::size_t kMostFreed = 64;

// Shortest first: in which hundredth of a second its turn is.
constexpr double kTurnsPerSecond = 100;
std::int64_t turn_of(const ClassQueue::Member& member) {
  constexpr double kMost = 1e15;
  if (member.strict_priority > 0) return std::numeric_limits<std::int64_t>::min();
  if (member.strict_priority == ClassQueue::kBehind)
    return std::numeric_limits<std::int64_t>::max();
  const double turn = scheduling::turn(member.seconds, member.arrival - member.jump);
  return static_cast<std::int64_t>(std::floor(std::clamp(kTurnsPerSecond * turn, -kMost, kMost)));
}

}  // namespace

// The waiting requests of one tenant in one bucket.
struct ClassQueue::Line {
  Tenant* tenant = nullptr;
  Bucket* bucket = nullptr;
  KineticTournament<Member> members;  // those that are not aside
  std::size_t waiting = 0;            // those too
  Member* best = nullptr;

  double settle(double now) {
    best = members.best(now);
    return members.until();
  }
  bool ahead_of(const Line& other, double now) const;
  double overtaken_by(const Line& other, double now) const;

  std::size_t slot = 0;
};

struct ClassQueue::Bucket {
  WaitKey awaited;
  KineticTournament<Line> lines;  // those with a request that is not aside
  std::unordered_map<Tenant*, std::unique_ptr<Line>> by_tenant;
  Line* best = nullptr;
  std::uint64_t tried_in = 0;  // which round
  std::size_t passes = 0;      // in this round
  bool closed = false;         // for this round
  bool races = false;
  bool listed = false;                 // among those to be reset
  double tried = 0;                    // when it last was, or came to be
  std::list<Bucket*>::iterator age{};  // but that of newcomers

  bool of_newcomers() const { return awaited.what.empty(); }
  double settle(double now) {
    best = lines.best(now);
    return lines.until();
  }
  bool ahead_of(const Bucket& other, double now) const {
    return passes != other.passes ? passes < other.passes : best->ahead_of(*other.best, now);
  }
  double overtaken_by(const Bucket& other, double now) const {
    return passes != other.passes ? kForever : best->overtaken_by(*other.best, now);
  }

  std::size_t slot = 0;
};

struct ClassQueue::Tenant {
  std::string name;
  std::multiset<double>::iterator served;  // tokens, on the scale of the waiting tenants
  std::vector<Line*> lines;
  Work waiting;
  // The waiting requests with one turn.
  struct Turn {
    std::size_t requests = 0;
    Work work;
    // Of these, or of one that has left: the smallest work, and the most urgent time.
    Work least{.tokens = kForever, .seconds = kForever};
    double by = kForever;
  };
  std::map<std::int64_t, Turn> by_turn;  // where shorter ones go first
  std::size_t due = 0;                   // requests with an objective

  void add(const Member& member);
  void remove(const Member& member);
};

void ClassQueue::Tenant::add(const Member& member) {
  waiting += member.work();
  if (member.order != QueueOrder::Shortest) return;
  Turn& turn = by_turn[turn_of(member)];
  ++turn.requests;
  turn.work += member.work();
  if (member.seconds < turn.least.seconds) turn.least = member.work();
  turn.by = std::min(turn.by, member.by);
  if (member.by < kForever) ++due;
}

void ClassQueue::Tenant::remove(const Member& member) {
  waiting -= member.work();
  if (member.order != QueueOrder::Shortest) return;
  const auto found = by_turn.find(turn_of(member));
  if (found == by_turn.end()) return;
  found->second.work -= member.work();
  if (--found->second.requests == 0) by_turn.erase(found);
  if (member.by < kForever) --due;
}

double ClassQueue::Member::score(double now) const {
  switch (order) {
    case QueueOrder::Fcfs:
      return jump - arrival;
    case QueueOrder::Lcfs:
      return jump + arrival;
    case QueueOrder::Shortest:
      return -turn(seconds, arrival - jump);
    case QueueOrder::Wspt:
      break;
  }
  return (1 + jump + (now - arrival)) / cost;
}

bool ClassQueue::Member::ahead_of(const Member& other, double now) const {
  if (strict_priority != other.strict_priority) return strict_priority > other.strict_priority;
  const double mine = score(now);
  const double others = other.score(now);
  return mine != others ? mine > others : ticket < other.ticket;
}

double ClassQueue::Member::overtaken_by(const Member& other, double now) const {
  // Only a cheaper one gains on it, and only as long as both wait.
  if (order != QueueOrder::Wspt || strict_priority != other.strict_priority || other.cost >= cost) {
    return kForever;
  }
  const double start = 1 + jump - arrival;
  const double others_start = 1 + other.jump - other.arrival;
  const double meet = (start * other.cost - others_start * cost) / (cost - other.cost);
  return std::max(now, meet - kSlack);
}

bool ClassQueue::Line::ahead_of(const Line& other, double now) const {
  if (best->strict_priority != other.best->strict_priority)
    return best->strict_priority > other.best->strict_priority;
  if (*tenant->served != *other.tenant->served) return *tenant->served < *other.tenant->served;
  return best->ahead_of(*other.best, now);
}

double ClassQueue::Line::overtaken_by(const Line& other, double now) const {
  if (*tenant->served != *other.tenant->served) return kForever;
  return best->overtaken_by(*other.best, now);
}

ClassQueue::ClassQueue(QueueOrder order) : order_(order) {}
ClassQueue::~ClassQueue() = default;
ClassQueue::ClassQueue(ClassQueue&&) noexcept = default;

ClassQueue::Tenant& ClassQueue::tenant(const std::string& name) {
  auto& found = tenants_[name];
  if (!found) {
    double served = counters_.empty() ? 0 : *counters_.begin();
    if (const auto debt = debts_.find(name); debt != debts_.end()) {
      served = std::max(served, debt->second);
      debts_.erase(debt);
    }
    found = std::make_unique<Tenant>(name, counters_.insert(served), std::vector<Line*>());
  }
  return *found;
}

ClassQueue::Line& ClassQueue::line_of(Tenant& owner, const WaitKey& said, double now) {
  const WaitKey awaited = said.what.empty() ? WaitKey() : said;
  auto& bucket = buckets_[awaited];
  if (!bucket) {
    bucket = std::make_unique<Bucket>();
    bucket->awaited = awaited;
    bucket->tried = now;
    if (!bucket->of_newcomers())
      bucket->age = buckets_by_age_.insert(buckets_by_age_.end(), bucket.get());
  }
  auto& line = bucket->by_tenant[&owner];
  if (!line) {
    line = std::make_unique<Line>();
    line->tenant = &owner;
    line->bucket = bucket.get();
    owner.lines.push_back(line.get());
  }
  return *line;
}

void ClassQueue::enter(Member& member, Line& line, double now) {
  member.line = &line;
  ++line.waiting;
  if (!line.bucket->of_newcomers()) return;
  member.tried = now;
  member.age = newcomers_.insert(newcomers_.end(), &member);
}

void ClassQueue::add(Member& member, const std::string& tenant_name, const WaitKey& awaited,
                     double now) {
  member.order = order_;
  Tenant& owner = tenant(tenant_name);
  owner.add(member);
  waiting_ += member.work();
  enter(member, line_of(owner, awaited, now), now);
  if (member.until < kForever) until_.emplace(member.until, &member);
  ++size_;
  race(member, now);
}

void ClassQueue::refresh(Bucket& bucket, double now) {
  const bool has_waiting = bucket.lines.size() > 0 && !bucket.closed;
  if (has_waiting && bucket.races) {
    race_.changed(bucket, now);
  } else if (has_waiting) {
    race_.join(bucket, now);
  } else if (bucket.races) {
    race_.leave(bucket, now);
  }
  bucket.races = has_waiting;
}

void ClassQueue::race(Member& member, double now) {
  Line& line = *member.line;
  member.aside = false;
  line.members.join(member, now);
  if (line.members.size() == 1) {
    line.bucket->lines.join(line, now);
  } else {
    line.bucket->lines.changed(line, now);
  }
  refresh(*line.bucket, now);
}

void ClassQueue::withdraw(Member& member, double now) {
  Line& line = *member.line;
  line.members.leave(member, now);
  if (line.members.size() == 0) {
    line.bucket->lines.leave(line, now);
  } else {
    line.bucket->lines.changed(line, now);
  }
  refresh(*line.bucket, now);
}

void ClassQueue::put_aside(Member& member, double now) {
  withdraw(member, now);
  member.aside = true;
  aside_.push_back(&member);
}

// Requires: it does not race.
void ClassQueue::leave_line(Member& member) {
  Line& line = *member.line;
  Bucket& bucket = *line.bucket;
  if (bucket.of_newcomers()) newcomers_.erase(member.age);
  if (--line.waiting > 0) return;
  Tenant& owner = *line.tenant;
  std::erase(owner.lines, &line);
  bucket.by_tenant.erase(&owner);
  if (!bucket.by_tenant.empty()) return;
  if (!bucket.of_newcomers()) buckets_by_age_.erase(bucket.age);
  if (bucket.listed) std::erase(tried_buckets_, &bucket);
  buckets_.erase(WaitKey(bucket.awaited));
}

void ClassQueue::take_out(Member& member, double now) {
  if (member.aside) {
    std::erase(aside_, &member);
  } else {
    withdraw(member, now);
  }
  wait_until(member, kForever);
  --size_;
  Tenant& owner = *member.line->tenant;
  owner.remove(member);
  waiting_ -= member.work();
  leave_line(member);
  if (owner.lines.empty()) dismiss(owner);
  if (size_ > 0) return;
  waiting_ = {};  // without what rounding has left
  // clear() would keep their buckets
  debts_ = decltype(debts_)();
  buckets_ = decltype(buckets_)();
  tenants_ = decltype(tenants_)();
}

void ClassQueue::remove(Member& member, double now) { take_out(member, now); }

void ClassQueue::serve(Member& member, double now) {
  charge(*member.line->tenant, member.cost, now);
  take_out(member, now);
}

void ClassQueue::charge(Tenant& tenant, double cost, double now) {
  auto counter = counters_.extract(tenant.served);
  counter.value() += cost;
  tenant.served = counters_.insert(std::move(counter));
  if (tenants_.size() == 1) return;  // no other to compare it with
  for (Line* line : tenant.lines) {
    if (line->members.size() == 0) continue;
    line->bucket->lines.changed(*line, now);
    refresh(*line->bucket, now);
  }
}

void ClassQueue::dismiss(Tenant& tenant) {
  const double served = *tenant.served;
  counters_.erase(tenant.served);
  if (!counters_.empty() && served > *counters_.begin()) {
    if (debts_.size() >= kMostDebts) {
      std::erase_if(debts_, [this](const auto& debt) { return debt.second <= *counters_.begin(); });
      if (debts_.size() >= kMostDebts) debts_.clear();  // better forgiven than without bound
    }
    debts_.emplace(tenant.name, served);
  }
  tenants_.erase(std::string(tenant.name));
}

ClassQueue::Member* ClassQueue::first(double now) {
  const Bucket* const bucket = race_.best(now);
  return bucket ? bucket->best->best : nullptr;
}

ClassQueue::Untried ClassQueue::longest_untried_bucket(double now) {
  // Passes over no more buckets than a round tries: the others of a bucket may all be aside.
  for (Bucket* const bucket : buckets_by_age_) {
    const Line* const line = bucket->tried_in == round_ ? nullptr : bucket->lines.best(now);
    if (line) return {.member = line->best, .since = bucket->tried};
  }
  return {};
}

ClassQueue::Untried ClassQueue::longest_untried_newcomer() const {
  for (Member* const member : newcomers_) {
    if (!member->aside) return {.member = member, .since = member->tried};
  }
  return {};
}

void ClassQueue::pass(Member& member, const WaitKey& awaited, double now, double until) {
  if (member.aside) return;
  // Without a new key it waits for the same as before, and no longer.
  if (!awaited.what.empty() || until < kForever) wait_until(member, until);
  Bucket& bucket = *member.line->bucket;
  const bool moves = !awaited.what.empty() && awaited != bucket.awaited;
  if (moves) {
    put_aside(member, now);
    move(member, awaited, now);
  } else if (bucket.of_newcomers()) {
    put_aside(member, now);
    member.tried = now;
    newcomers_.splice(newcomers_.end(), newcomers_, member.age);
  } else {
    tried(bucket, now);
    if (bucket.awaited.surely) {
      close(bucket, now);
    } else {
      ++bucket.passes;
      put_aside(member, now);
    }
  }
}

void ClassQueue::move(Member& member, const WaitKey& awaited, double now) {
  // Before it leaves, so that nothing is forgotten of its tenant.
  Line& next = line_of(*member.line->tenant, awaited, now);
  leave_line(member);
  enter(member, next, now);
}

void ClassQueue::wait_until(Member& member, double until) {
  if (member.until < kForever) until_.erase({member.until, &member});
  member.until = until;
  if (until < kForever) until_.emplace(until, &member);
}

void ClassQueue::tried(Bucket& bucket, double now) {
  bucket.tried_in = round_;
  bucket.tried = now;
  buckets_by_age_.splice(buckets_by_age_.end(), buckets_by_age_, bucket.age);
  if (!std::exchange(bucket.listed, true)) tried_buckets_.push_back(&bucket);
}

void ClassQueue::close(Bucket& bucket, double now) {
  bucket.closed = true;
  if (!std::exchange(bucket.listed, true)) tried_buckets_.push_back(&bucket);
  refresh(bucket, now);
}

void ClassQueue::bar_newcomers(double now) {
  if (const auto found = buckets_.find(WaitKey()); found != buckets_.end())
    close(*found->second, now);
}

Work ClassQueue::before(const std::string& tenant, const Member& newcomer) const {
  const auto found = tenants_.find(tenant);
  Work own;
  if (found != tenants_.end()) own = found->second->waiting;
  if (found != tenants_.end() && order_ == QueueOrder::Shortest) {
    own = {};
    const std::int64_t turn = turn_of(newcomer);
    for (const auto& [its_turn, requests] : found->second->by_turn) {
      if (its_turn > turn) break;
      own += requests.work;
    }
  }
  return shared(found == tenants_.end() ? nullptr : found->second.get(), own, newcomer.cost);
}

Work ClassQueue::shared(const Tenant* tenant, const Work& own, double newcomer_cost) const {
  const std::size_t count = tenants_.size() - (tenant == nullptr ? 0 : 1);
  if (count == 0) return own;
  Work others = waiting_;
  if (tenant != nullptr) others -= tenant->waiting;
  Work all = own;
  all += others.up_to((own.tokens + newcomer_cost) * static_cast<double>(count));
  return all;
}

// From the last request towards its own place, until one would be late.
double ClassQueue::delay(const std::string& tenant, const Member& newcomer, double now,
                         const Forecast& forecast) const {
  const auto found = tenants_.find(tenant);
  if (found == tenants_.end() || found->second->due == 0 || newcomer.strict_priority != 0) return 0;
  const Tenant& its = *found->second;
  const std::int64_t own_turn = turn_of(newcomer);
  Work until = its.waiting;
  until += newcomer.work();
  for (auto it = its.by_turn.rbegin(); it != its.by_turn.rend() && it->first >= own_turn; ++it) {
    const auto& [turn, requests] = *it;
    if (requests.by < kForever) {
      // The last of them waits for all but itself.
      Work before = until;
      before -= requests.least;
      if (now + forecast(shared(&its, before, 0)) > requests.by) {
        // In the middle of the next turn, or rounding may put it into this one.
        const double behind = (static_cast<double>(turn) + 1.5) / kTurnsPerSecond;
        return (behind - scheduling::turn(newcomer.seconds, newcomer.arrival - newcomer.jump)) /
               kWaitWeight;
      }
    }
    until -= requests.work;
  }
  return 0;
}

bool ClassQueue::newcomer(const Member& member) const {
  return member.line->bucket->of_newcomers();
}

std::size_t ClassQueue::passes_before(const Member& member) const {
  return member.line->bucket->passes;
}

bool ClassQueue::passed(const Member& member) const {
  const Bucket& bucket = *member.line->bucket;
  return member.aside || (bucket.tried_in == round_ && bucket.awaited.surely);
}

void ClassQueue::begin_round(double now) {
  ++round_;
  for (Bucket* const bucket : std::exchange(tried_buckets_, {})) {
    bucket->listed = bucket->closed = false;
    bucket->passes = 0;
    refresh(*bucket, now);
  }
  for (Member* member : std::exchange(aside_, {})) race(*member, now);
  for (std::size_t i = 0; i < kMostFreed && !until_.empty() && until_.begin()->first <= now; ++i) {
    Member& member = *until_.begin()->second;
    wait_until(member, kForever);
    if (newcomer(member)) continue;
    withdraw(member, now);
    move(member, {}, now);
    race(member, now);
  }
}

}  // namespace baton::scheduling
