// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "admission/queue.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace baton::admission {

inline Clock::time_point at(double seconds) {
  return Clock::time_point(
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
}

// The queue's rules, word for word and without any thought of speed: everything is a list that is
// searched, and rounds are walked one by one.
class QueueModel {
 public:
  explicit QueueModel(config::Queue config) : config_(std::move(config)) {
    committed_.deficits.resize(config_.classes.size());
    trial_ = committed_;
    served_.resize(config_.classes.size());
    passed_cost_.resize(config_.classes.size());
  }

  void add(Ticket ticket, std::size_t policy_class, Entry entry) {
    if (!config_.fair_tenants) entry.tenant.clear();
    std::map<std::string, double>& served = served_[policy_class];
    std::optional<double> least;
    bool known = false;
    for (const Waiting& other : all_) {
      if (other.policy_class != policy_class) continue;
      const double theirs = served[other.entry.tenant];
      least = std::min(least.value_or(theirs), theirs);
      known = known || other.entry.tenant == entry.tenant;
    }
    if (!known) {
      if (!least) served.clear();
      served[entry.tenant] = std::max(served[entry.tenant], least.value_or(0));
    }
    all_.push_back({ticket, policy_class, std::move(entry)});
  }

  void begin_round() {
    trial_ = committed_;
    passed_.clear();
    passed_lanes_.clear();
    passes_ = 0;
  }

  std::optional<Ticket> next(Clock::time_point now) {
    if (passes_ >= Queue::kLookAhead) return std::nullopt;
    std::vector<const Waiting*> firsts;
    for (std::size_t i = 0; i < config_.classes.size(); ++i) firsts.push_back(first(i, now));
    if (std::ranges::count(firsts, nullptr) == std::ranges::ssize(firsts)) return std::nullopt;
    while (true) {
      const std::size_t i = trial_.of;
      if (firsts[i]) {
        if (!std::exchange(trial_.granted, true)) trial_.deficits[i] += config_.classes[i].quantum;
        if (cost(*firsts[i]) <= trial_.deficits[i]) return firsts[i]->ticket;
      } else {
        trial_.deficits[i] =
            std::min(trial_.deficits[i], std::max(passed_cost_[i], config_.classes[i].quantum));
      }
      trial_.of = (i + 1) % config_.classes.size();
      trial_.granted = false;
    }
  }

  void taken(Ticket ticket) {
    const Waiting waiting = find(ticket);
    std::uint64_t& deficit = trial_.deficits[waiting.policy_class];
    deficit -= std::min(deficit, cost(waiting));
    committed_ = trial_;
    served_[waiting.policy_class][waiting.entry.tenant] += static_cast<double>(cost(waiting));
    remove(ticket);
  }

  void pass(Ticket ticket) {
    ++passes_;
    const Waiting& waiting = find(ticket);
    passed_.insert(ticket);
    passed_cost_[waiting.policy_class] = cost(waiting);
    if (!waiting.entry.lane.empty())
      passed_lanes_.emplace(waiting.policy_class, waiting.entry.lane);
  }

  void remove(Ticket ticket) {
    const std::size_t policy_class = find(ticket).policy_class;
    const std::string lane = find(ticket).entry.lane;
    std::erase_if(all_, [ticket](const Waiting& waiting) { return waiting.ticket == ticket; });
    const auto same_class = [&](const Waiting& waiting) {
      return waiting.policy_class == policy_class;
    };
    if (std::ranges::none_of(all_, same_class))
      committed_.deficits[policy_class] = trial_.deficits[policy_class] = 0;
    // Who comes into a lane that nobody is in is the first to be tried there.
    if (std::ranges::none_of(all_, [&](const Waiting& waiting) {
          return same_class(waiting) && waiting.entry.lane == lane;
        }))
      passed_lanes_.erase({policy_class, lane});
  }

 private:
  struct Waiting {
    Ticket ticket;
    std::size_t policy_class;
    Entry entry;
  };
  struct Turn {
    std::size_t of = 0;
    bool granted = false;
    std::vector<std::uint64_t> deficits;
  };

  static std::uint64_t cost(const Waiting& waiting) {
    return std::max<std::uint64_t>(1, waiting.entry.uncached_tokens());
  }
  const Waiting& find(Ticket ticket) const {
    return *std::ranges::find(all_, ticket, &Waiting::ticket);
  }
  double score(const Waiting& waiting, double now) const {
    const double jump = std::max(0.0, waiting.entry.priority_jump);
    const double arrival =
        std::chrono::duration<double>(waiting.entry.arrival.time_since_epoch()).count();
    switch (config_.classes[waiting.policy_class].order) {
      case config::QueueOrder::Fcfs:
        return jump - arrival;
      case config::QueueOrder::Lcfs:
        return jump + arrival;
      case config::QueueOrder::Shortest:
        return -(waiting.entry.compute_seconds + 0.3 * (arrival - jump));
      case config::QueueOrder::Wspt:
        break;
    }
    return (1 + jump + (now - arrival)) / static_cast<double>(cost(waiting));
  }
  const Waiting* first(std::size_t policy_class, Clock::time_point time) {
    const double now = std::chrono::duration<double>(time.time_since_epoch()).count();
    const auto key = [&](const Waiting& waiting) {
      return std::tuple(waiting.entry.strict_priority, -served_[policy_class][waiting.entry.tenant],
                        score(waiting, now), -static_cast<double>(waiting.ticket));
    };
    const Waiting* best = nullptr;
    for (const Waiting& waiting : all_) {
      if (waiting.policy_class != policy_class || passed_.contains(waiting.ticket) ||
          passed_lanes_.contains({policy_class, waiting.entry.lane}))
        continue;
      if (!best || key(waiting) > key(*best)) best = &waiting;
    }
    return best;
  }

  config::Queue config_;
  std::vector<Waiting> all_;
  std::vector<std::map<std::string, double>> served_;
  Turn committed_;
  Turn trial_;
  std::vector<std::uint64_t> passed_cost_;
  std::set<Ticket> passed_;
  std::set<std::pair<std::size_t, std::string>> passed_lanes_;
  std::size_t passes_ = 0;
};

}  // namespace baton::admission
