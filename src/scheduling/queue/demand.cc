// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/demand.h"

#include "scheduling/policy/forecast.h"

#include <algorithm>

namespace baton::scheduling {
namespace {

// A request may wait this multiple of its own time.
constexpr double kOwnTimes = 8;

double in_seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

Demand::Demand(const config::Queue& config, Time now)
    : drain_(now), bound_(in_seconds(config.longest_wait.value_or(std::chrono::milliseconds(0)))) {
  for (const config::QueueClass& each : config.classes)
    classes_.push_back({.quantum = static_cast<double>(std::max<std::uint64_t>(1, each.quantum)),
                        .shortest_first = each.order == config::QueueOrder::Shortest});
}

void Demand::add(std::size_t policy_class, const Work& work, Time now) {
  if (requests_++ == 0) drain_.begin(now);
  ++classes_[policy_class].requests;
  classes_[policy_class].waiting += work;
  classes_[policy_class].overtakers.came(work.seconds, now);
}

void Demand::remove(std::size_t policy_class, const Work& work, Time now) {
  PolicyClass& its = classes_[policy_class];
  its.waiting -= work;
  if (--its.requests == 0) its.waiting = {};  // without what rounding has left
  if (--requests_ == 0) drain_.end(now);
}

// Classes share tokens by their quanta.
double Demand::seconds_before(const Newcomer& newcomer) const {
  const PolicyClass& its = classes_[newcomer.policy_class];
  // A request that waits for something other than a worker is before it, but not in its way.
  const double tokens = std::min(its.waiting.tokens, newcomer.before.tokens);
  double seconds = std::min(its.waiting.seconds, newcomer.before.seconds);
  for (const PolicyClass& each : classes_) {
    if (&each == &its) continue;
    seconds += each.waiting.up_to(tokens * each.quantum / its.quantum).seconds;
  }
  return seconds;
}

std::optional<Demand::Wait> Demand::too_long(const Newcomer& newcomer, Time now) {
  const auto before = drain_.forecast(seconds_before(newcomer), now);
  const auto whole = drain_.forecast(seconds_of_all(), now);
  if (!before || !whole) return std::nullopt;
  const double seconds = std::max(0.0, *before - std::max(0.0, newcomer.priority_jump));
  if (bound_.allows(seconds, kOwnTimes * newcomer.compute_seconds, *whole, now))
    return std::nullopt;
  return Wait{.seconds = seconds, .limit = bound_.limit()};
}

double Demand::foreseen(const Newcomer& newcomer, std::size_t workers, Time now) const {
  const double per_second =
      drain_.forecast(1, now).value_or(1 / static_cast<double>(std::max<std::size_t>(1, workers)));
  const double wait = per_second * seconds_before(newcomer);
  const double jump = std::max(0.0, newcomer.priority_jump);
  const PolicyClass& its = classes_[newcomer.policy_class];
  if (!its.shortest_first) return std::max(0.0, wait - jump);
  // Requests that it jumps over are not in `before`.
  return its.overtakers.wait_with_them(newcomer.compute_seconds - kWaitWeight * jump, wait,
                                       per_second, now);
}

std::chrono::seconds Demand::retry_after(Time now) const {
  return drain_.time_for(seconds_of_all(), now);
}

double Demand::seconds_of_all() const {
  double seconds = 0;
  for (const PolicyClass& each : classes_) seconds += each.waiting.seconds;
  return seconds;
}

}  // namespace baton::scheduling
