// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "admission/class_queue.h"

#include "routing/forecast.h"

#include <algorithm>
#include <utility>

namespace baton::admission {
namespace {

using config::QueueOrder;

// A match is played again this much before its time: what is computed of the time may be wrong in
// its last digits.
constexpr double kSlack = 1e-6;
constexpr std::size_t kMostDebts = 4096;

}  // namespace

// What a tenant has waiting in one lane.
struct ClassQueue::Line {
  Tenant* tenant = nullptr;
  Lane* lane = nullptr;
  Tournament<Member> members;  // those that are not aside
  std::size_t waiting = 0;     // those too
  Member* best = nullptr;

  double settle(double now) {
    best = members.best(now);
    return members.until();
  }
  bool ahead_of(const Line& other, double now) const;
  double overtaken_by(const Line& other, double now) const;

  std::size_t slot = 0;
};

struct ClassQueue::Lane {
  std::string name;
  Tournament<Line> lines;  // those with somebody who is not aside
  std::unordered_map<Tenant*, std::unique_ptr<Line>> by_tenant;
  std::uint64_t passed_in = 0;  // which round
};

struct ClassQueue::Tenant {
  std::string name;
  std::multiset<double>::iterator served;  // tokens, on the scale of those who wait
  std::vector<Line*> lines;
};

double ClassQueue::Member::score(double now) const {
  switch (order) {
    case QueueOrder::Fcfs:
      return jump - arrival;
    case QueueOrder::Lcfs:
      return jump + arrival;
    case QueueOrder::Shortest:
      return -routing::turn(seconds, arrival - jump);
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
  // Only what is cheaper gains on it, and only as long as both wait.
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

void ClassQueue::add(Member& member, const std::string& tenant_name, const std::string& lane_name,
                     double now) {
  Tenant& owner = tenant(tenant_name);
  auto& lane = lanes_[lane_name];
  if (!lane) {
    lane = std::make_unique<Lane>();
    lane->name = lane_name;
  }
  auto& line = lane->by_tenant[&owner];
  if (!line) {
    line = std::make_unique<Line>();
    line->tenant = &owner;
    line->lane = lane.get();
    owner.lines.push_back(line.get());
  }
  member.order = order_;
  member.line = line.get();
  ++line->waiting;
  ++size_;
  race(member, now);
}

void ClassQueue::race(Member& member, double now) {
  Line& line = *member.line;
  member.aside = false;
  line.members.join(member, now);
  if (line.members.size() == 1) {
    line.lane->lines.join(line, now);
  } else {
    line.lane->lines.changed(line, now);
  }
}

void ClassQueue::withdraw(Member& member, double now) {
  Line& line = *member.line;
  line.members.leave(member, now);
  if (line.members.size() == 0) {
    line.lane->lines.leave(line, now);
  } else {
    line.lane->lines.changed(line, now);
  }
}

void ClassQueue::take_out(Member& member, double now) {
  if (member.aside) {
    std::erase(aside_, &member);
  } else {
    withdraw(member, now);
  }
  --size_;
  Line& line = *member.line;
  if (--line.waiting > 0) return;
  Tenant& owner = *line.tenant;
  Lane& lane = *line.lane;
  std::erase(owner.lines, &line);
  lane.by_tenant.erase(&owner);
  if (lane.by_tenant.empty()) lanes_.erase(std::string(lane.name));
  if (owner.lines.empty()) dismiss(owner);
  if (size_ > 0) return;
  // clear() would keep their buckets
  debts_ = decltype(debts_)();
  lanes_ = decltype(lanes_)();
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
  for (Line* line : tenant.lines) {
    if (line->members.size() > 0) line->lane->lines.changed(*line, now);
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
  Line* first = nullptr;
  for (const auto& [name, lane] : lanes_) {
    if (lane->passed_in == round_) continue;
    Line* line = lane->lines.best(now);
    if (line && (!first || line->ahead_of(*first, now))) first = line;
  }
  return first ? first->best : nullptr;
}

void ClassQueue::pass(Member& member, double now) {
  Lane& lane = *member.line->lane;
  if (!lane.name.empty()) {
    lane.passed_in = round_;
    return;
  }
  if (member.aside) return;
  withdraw(member, now);
  member.aside = true;
  aside_.push_back(&member);
}

bool ClassQueue::passed(const Member& member) const {
  return member.aside || member.line->lane->passed_in == round_;
}

void ClassQueue::begin_round(double now) {
  ++round_;
  for (Member* member : std::exchange(aside_, {})) race(*member, now);
}

}  // namespace baton::admission
