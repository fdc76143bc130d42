// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/class_queues.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace baton::scheduling {
namespace {

std::uint64_t cost_of(const ClassQueue::Member& member) {
  return static_cast<std::uint64_t>(member.cost);
}

// How often a class must get its quantum until it can spend `cost`.
std::uint64_t grants_needed(std::uint64_t cost, std::uint64_t deficit, std::uint64_t quantum) {
  return cost <= deficit ? 0 : (cost - deficit + quantum - 1) / quantum;
}

std::uint64_t quantum_of(const config::QueueClass& config) {
  return std::max<std::uint64_t>(1, config.quantum);
}

}  // namespace

std::string_view to_string(LimitKind kind) {
  constexpr std::array<std::string_view, 3> kNames{"requests", "raw_isl_tokens", "cached_tokens"};
  return kNames[static_cast<std::size_t>(kind)];
}

ClassQueues::ClassQueues(const config::Queue& config, Clock::time_point now)
    : fair_tenants_(config.fair_tenants), beginning_(now) {
  for (const config::QueueClass& each : config.classes)
    classes_.push_back(
        {.config = each, .members = ClassQueue(each.order), .totals = {}, .passed_cost = 0});
  turn_.deficits.resize(classes_.size());
  trial_ = turn_;
}

double ClassQueues::seconds(Clock::time_point time) {
  now_ = std::max(now_, since_beginning(time));
  return now_;
}

double ClassQueues::since_beginning(Clock::time_point time) const {
  return std::chrono::duration<double>(time - beginning_).count();
}

std::optional<Refusal> ClassQueues::refuse(const PolicyClass& wanted, const Totals& weight,
                                           std::size_t workers) const {
  const auto exceeded = [&](LimitKind kind, auto per_worker, std::uint64_t current,
                            std::uint64_t own) -> std::optional<Refusal> {
    if (!per_worker) return std::nullopt;
    const std::uint64_t limit = *per_worker * std::max<std::size_t>(1, workers);
    if (own <= limit && current <= limit - own) return std::nullopt;
    return Refusal{.policy_class = wanted.config.name,
                   .kind = kind,
                   .current = current,
                   .limit = limit,
                   .own = own};
  };
  const config::QueueClass& config = wanted.config;
  const Totals& totals = wanted.totals;
  auto refusal = exceeded(LimitKind::Requests, config.requests_per_worker, totals.requests, 1);
  if (!refusal)
    refusal = exceeded(LimitKind::RawIslTokens, config.tokens_per_worker, totals.prompt_tokens,
                       weight.prompt_tokens);
  if (!refusal)
    refusal = exceeded(LimitKind::CachedTokens, config.cached_tokens_per_worker,
                       totals.cached_tokens, weight.cached_tokens);
  return refusal;
}

ClassQueue::Member ClassQueues::member_of(const Entry& entry) const {
  ClassQueue::Member member;
  member.strict_priority = entry.behind ? ClassQueue::kBehind : entry.strict_priority;
  member.jump = std::max(0.0, entry.priority_jump) - entry.delay;
  member.arrival = since_beginning(entry.arrival);
  member.cost = static_cast<double>(std::max<std::uint64_t>(1, entry.uncached_tokens()));
  member.seconds = entry.compute_seconds;
  // One that waits behind all others is late already: it delays none.
  if (entry.by && !entry.behind) member.by = since_beginning(*entry.by);
  if (entry.until) member.until = since_beginning(*entry.until);
  return member;
}

std::expected<Ticket, Refusal> ClassQueues::add(std::size_t policy_class, const Entry& entry,
                                                std::size_t workers, Clock::time_point now) {
  PolicyClass& wanted = classes_[policy_class];
  const Totals weight{.requests = 1,
                      .prompt_tokens = entry.prompt_tokens,
                      .cached_tokens = entry.cached_tokens,
                      .uncached_tokens = entry.uncached_tokens()};
  if (auto refusal = refuse(wanted, weight, workers)) return std::unexpected(*std::move(refusal));
  const Ticket ticket = ++last_ticket_;
  Place& place = places_[ticket];
  place.policy_class = policy_class;
  place.weight = weight;
  place.member = member_of(entry);
  place.member.ticket = ticket;
  if (fair_tenants_) place.tenant = entry.tenant;
  wanted.members.add(place.member, place.tenant, entry.awaits, seconds(now));
  wanted.totals.requests += 1;
  wanted.totals.prompt_tokens += weight.prompt_tokens;
  wanted.totals.cached_tokens += weight.cached_tokens;
  wanted.totals.uncached_tokens += weight.uncached_tokens;
  return ticket;
}

void ClassQueues::begin_round(Clock::time_point now) {
  in_order_ = by_age_ = {};
  trial_ = turn_;
  for (PolicyClass& each : classes_) each.members.begin_round(seconds(now));
}

std::optional<Ticket> ClassQueues::next(Clock::time_point time) {
  const double now = seconds(time);
  if (in_order_.all < kInOrder) {
    aged_ = false;
    if (const auto ticket = next_in_order(now)) return ticket;
  }
  if (by_age_.all >= kByAge) return std::nullopt;
  aged_ = true;
  return next_by_age(now);
}

std::optional<Ticket> ClassQueues::next_by_age(double now) {
  ClassQueue::Untried longest;
  const auto consider = [&longest](const ClassQueue::Untried& other) {
    if (other.member && (!longest.member || other.since < longest.since)) longest = other;
  };
  for (PolicyClass& each : classes_) {
    consider(each.members.longest_untried_bucket(now));
    if (by_age_.newcomers < kByAge / 2) consider(each.members.longest_untried_newcomer());
  }
  return longest.member ? std::optional(longest.member->ticket) : std::nullopt;
}

std::optional<Ticket> ClassQueues::next_in_order(double now) {
  if (in_order_.newcomers >= kInOrder / 2) {
    for (PolicyClass& each : classes_) each.members.bar_newcomers(now);
  }
  std::vector<ClassQueue::Member*> firsts;
  firsts.reserve(classes_.size());
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (PolicyClass& each : classes_) {
    firsts.push_back(each.members.first(now));
    if (firsts.back()) fewest = std::min(fewest, each.members.passes_before(*firsts.back()));
  }
  if (fewest == std::numeric_limits<std::size_t>::max()) return std::nullopt;
  std::vector<bool> empty(firsts.size());
  for (std::size_t i = 0; i < firsts.size(); ++i) {
    empty[i] = firsts[i] == nullptr;
    // The first of each bucket of all classes, before the second of any.
    if (firsts[i] && classes_[i].members.passes_before(*firsts[i]) > fewest) firsts[i] = nullptr;
  }
  while (true) {
    for (std::size_t visits = 0; visits < classes_.size(); ++visits) {
      if (const ClassQueue::Member* first = firsts[trial_.of]) {
        std::uint64_t& deficit = trial_.deficits[trial_.of];
        if (!std::exchange(trial_.granted, true)) deficit += quantum_of(classes_[trial_.of].config);
        if (cost_of(*first) <= deficit) return first->ticket;
      }
      end_turn(empty[trial_.of]);
    }
    grant_in_bulk(firsts);
  }
}

void ClassQueues::end_turn(bool none_to_try) {
  if (none_to_try) {
    // While all of its workers are busy its deficit is at most the cost of its next request: more
    // would be a claim against classes that took nothing from it.
    const PolicyClass& each = classes_[trial_.of];
    std::uint64_t& deficit = trial_.deficits[trial_.of];
    deficit = std::min(deficit, std::max(each.passed_cost, quantum_of(each.config)));
  }
  trial_.of = (trial_.of + 1) % classes_.size();
  trial_.granted = false;
}

// Skips rounds in which no class can afford a request.
void ClassQueues::grant_in_bulk(const std::vector<ClassQueue::Member*>& firsts) {
  std::uint64_t rounds = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t i = 0; i < firsts.size(); ++i) {
    if (!firsts[i]) continue;
    rounds = std::min(rounds, grants_needed(cost_of(*firsts[i]), trial_.deficits[i],
                                            quantum_of(classes_[i].config)));
  }
  // The last of them is given in turn.
  for (std::size_t i = 0; i < firsts.size() && rounds > 1; ++i) {
    if (firsts[i]) trial_.deficits[i] += (rounds - 1) * quantum_of(classes_[i].config);
  }
}

void ClassQueues::taken(Ticket ticket, Clock::time_point now) {
  const auto found = places_.find(ticket);
  if (found == places_.end()) return;
  Place& place = found->second;
  std::uint64_t& deficit = trial_.deficits[place.policy_class];
  deficit -= std::min(deficit, cost_of(place.member));
  turn_ = trial_;
  classes_[place.policy_class].members.serve(place.member, seconds(now));
  forget(ticket);
}

void ClassQueues::pass(Ticket ticket, const WaitKey& awaited, Clock::time_point now,
                       std::optional<Clock::time_point> until) {
  const auto found = places_.find(ticket);
  if (found == places_.end()) return;
  Place& place = found->second;
  PolicyClass& its = classes_[place.policy_class];
  Passes& counted = aged_ ? by_age_ : in_order_;
  ++counted.all;
  if (its.members.newcomer(place.member)) ++counted.newcomers;
  its.members.pass(place.member, awaited, seconds(now), until ? since_beginning(*until) : kForever);
  its.passed_cost = cost_of(place.member);
}

void ClassQueues::remove(Ticket ticket, Clock::time_point now) {
  const auto found = places_.find(ticket);
  if (found == places_.end()) return;
  classes_[found->second.policy_class].members.remove(found->second.member, seconds(now));
  forget(ticket);
}

void ClassQueues::forget(Ticket ticket) {
  const auto place = places_.extract(ticket);
  const std::size_t policy_class = place.mapped().policy_class;
  const Totals& weight = place.mapped().weight;
  Totals& totals = classes_[policy_class].totals;
  totals.requests -= 1;
  totals.prompt_tokens -= weight.prompt_tokens;
  totals.cached_tokens -= weight.cached_tokens;
  totals.uncached_tokens -= weight.uncached_tokens;
  if (totals.requests == 0) turn_.deficits[policy_class] = trial_.deficits[policy_class] = 0;
  if (places_.empty()) places_ = decltype(places_)();  // clear() would keep its buckets
}

Work ClassQueues::before(std::size_t policy_class, const Entry& entry) const {
  return classes_[policy_class].members.before(fair_tenants_ ? entry.tenant : std::string(),
                                               member_of(entry));
}

double ClassQueues::delay(std::size_t policy_class, const Entry& entry, Clock::time_point now,
                          const ClassQueue::Forecast& forecast) const {
  return classes_[policy_class].members.delay(fair_tenants_ ? entry.tenant : std::string(),
                                              member_of(entry),
                                              std::max(now_, since_beginning(now)), forecast);
}

void ClassQueues::put_behind(Ticket ticket, Clock::time_point time) {
  const auto found = places_.find(ticket);
  if (found == places_.end()) return;
  Place& place = found->second;
  ClassQueue& members = classes_[place.policy_class].members;
  const double now = seconds(time);
  members.remove(place.member, now);
  place.member.strict_priority = ClassQueue::kBehind;
  place.member.by = kForever;
  members.add(place.member, place.tenant, {}, now);
}

bool ClassQueues::passed(Ticket ticket) const {
  const auto found = places_.find(ticket);
  return found != places_.end() &&
         classes_[found->second.policy_class].members.passed(found->second.member);
}

}  // namespace baton::scheduling
