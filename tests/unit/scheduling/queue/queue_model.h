// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "scheduling/queue/class_queues.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace baton::scheduling {

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

  void add(Ticket ticket, std::size_t policy_class, Entry entry, Clock::time_point now) {
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
    if (entry.awaits.what.empty()) entry.awaits = {};
    const Bucket key{policy_class, entry.awaits};
    if (!buckets_.contains(key)) buckets_[key].tried = {seconds(now), ++sequence_};
    all_.push_back({ticket, policy_class, std::move(entry), {seconds(now), ++sequence_}});
  }

  void begin_round() {
    trial_ = committed_;
    aside_.clear();
    for (auto& [key, bucket] : buckets_)
      bucket = {.tried = bucket.tried, .passes = 0, .in_round = false};
    in_order_ = by_age_ = {};
  }

  std::optional<Ticket> next(Clock::time_point now) {
    aged_ = false;
    if (in_order_.first < ClassQueues::kInOrder) {
      if (const auto ticket = next_in_order(now)) return ticket;
    }
    if (by_age_.first >= ClassQueues::kByAge) return std::nullopt;
    aged_ = true;
    return next_by_age(now);
  }

  std::optional<Ticket> next_in_order(Clock::time_point now) {
    std::vector<const Waiting*> firsts;
    std::optional<std::size_t> fewest;
    for (std::size_t i = 0; i < config_.classes.size(); ++i) {
      firsts.push_back(first(i, now));
      if (!firsts[i]) continue;
      const std::size_t passes = bucket_of(*firsts[i]).passes;
      fewest = std::min(fewest.value_or(passes), passes);
    }
    if (!fewest) return std::nullopt;
    while (true) {
      const std::size_t i = trial_.of;
      if (firsts[i] && bucket_of(*firsts[i]).passes == *fewest) {
        if (!std::exchange(trial_.granted, true)) trial_.deficits[i] += config_.classes[i].quantum;
        if (cost(*firsts[i]) <= trial_.deficits[i]) return firsts[i]->ticket;
      } else if (!firsts[i]) {
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

  void pass(Ticket ticket, WaitKey awaited, Clock::time_point now) {
    Waiting& waiting = find(ticket);
    passed_cost_[waiting.policy_class] = cost(waiting);
    auto& counted = aged_ ? by_age_ : in_order_;
    ++counted.first;
    if (newcomer(waiting)) ++counted.second;
    const Stamp stamp{seconds(now), ++sequence_};
    const Bucket key{waiting.policy_class, waiting.entry.awaits};
    if (!awaited.what.empty() && awaited != waiting.entry.awaits) {
      waiting.entry.awaits = awaited;
      const Bucket next{waiting.policy_class, awaited};
      if (!buckets_.contains(next)) buckets_[next].tried = stamp;
      aside_.insert(ticket);
      forget_bucket(key);
    } else if (newcomer(waiting)) {
      waiting.tried = stamp;
      aside_.insert(ticket);
    } else {
      BucketState& bucket = buckets_[key];
      bucket.in_round = true;
      bucket.tried = stamp;
      if (awaited_surely(waiting)) return;
      ++bucket.passes;
      aside_.insert(ticket);
    }
  }

  void remove(Ticket ticket) {
    const std::size_t policy_class = find(ticket).policy_class;
    const Bucket key{policy_class, find(ticket).entry.awaits};
    std::erase_if(all_, [ticket](const Waiting& waiting) { return waiting.ticket == ticket; });
    const auto same_class = [&](const Waiting& waiting) {
      return waiting.policy_class == policy_class;
    };
    if (std::ranges::none_of(all_, same_class))
      committed_.deficits[policy_class] = trial_.deficits[policy_class] = 0;
    forget_bucket(key);
  }

 private:
  using Stamp = std::pair<double, std::uint64_t>;
  struct Waiting {
    Ticket ticket;
    std::size_t policy_class;
    Entry entry;
    Stamp tried;  // of a newcomer
  };
  struct Bucket {
    std::size_t policy_class;
    WaitKey awaited;
    bool operator<(const Bucket& other) const {
      return std::tie(policy_class, awaited.what, awaited.surely) <
             std::tie(other.policy_class, other.awaited.what, other.awaited.surely);
    }
  };
  struct BucketState {
    Stamp tried = {};
    std::size_t passes = 0;
    bool in_round = false;  // it was tried
  };
  struct Turn {
    std::size_t of = 0;
    bool granted = false;
    std::vector<std::uint64_t> deficits;
  };

  static std::uint64_t cost(const Waiting& waiting) {
    return std::max<std::uint64_t>(1, waiting.entry.uncached_tokens());
  }
  Waiting& find(Ticket ticket) { return *std::ranges::find(all_, ticket, &Waiting::ticket); }
  static double seconds(Clock::time_point time) {
    return std::chrono::duration<double>(time.time_since_epoch()).count();
  }
  static bool newcomer(const Waiting& waiting) { return waiting.entry.awaits.what.empty(); }
  static bool awaited_surely(const Waiting& waiting) { return waiting.entry.awaits.surely; }
  const BucketState& bucket_of(const Waiting& waiting) {
    return buckets_[{waiting.policy_class, waiting.entry.awaits}];
  }
  bool may_be_tried(const Waiting& waiting) {
    if (aside_.contains(waiting.ticket)) return false;
    if (newcomer(waiting)) return true;
    return !(bucket_of(waiting).in_round && awaited_surely(waiting));
  }
  // Who comes into a bucket that nobody is in is the first to be tried there.
  void forget_bucket(const Bucket& key) {
    if (std::ranges::none_of(all_, [&](const Waiting& waiting) {
          return waiting.policy_class == key.policy_class && waiting.entry.awaits == key.awaited;
        }))
      buckets_.erase(key);
  }

  std::optional<Ticket> next_by_age(Clock::time_point now) {
    std::optional<std::pair<double, Ticket>> longest;
    const auto consider = [&longest](const std::optional<std::pair<Stamp, Ticket>>& other) {
      if (other && (!longest || other->first.first < longest->first))
        longest = {other->first.first, other->second};
    };
    for (std::size_t i = 0; i < config_.classes.size(); ++i) {
      std::optional<std::pair<Stamp, Ticket>> bucket;
      std::optional<std::pair<Stamp, Ticket>> alone;
      for (const Waiting& waiting : all_) {
        if (waiting.policy_class != i || !may_be_tried(waiting)) continue;
        if (newcomer(waiting)) {
          if (!alone || waiting.tried < alone->first) alone = {waiting.tried, waiting.ticket};
        } else if (!bucket_of(waiting).in_round) {
          const Waiting* const best = first(i, now, &waiting.entry.awaits);
          if (!bucket || bucket_of(waiting).tried < bucket->first)
            bucket = {bucket_of(waiting).tried, best->ticket};
        }
      }
      consider(bucket);
      if (by_age_.second < ClassQueues::kByAge / 2) consider(alone);
    }
    return longest ? std::optional(longest->second) : std::nullopt;
  }
  double score(const Waiting& waiting, double now) const {
    const double jump = std::max(0.0, waiting.entry.priority_jump) - waiting.entry.delay;
    const double arrival = seconds(waiting.entry.arrival);
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
  const Waiting* first(std::size_t policy_class, Clock::time_point time,
                       const WaitKey* only = nullptr) {
    const double now = seconds(time);
    const auto key = [&](const Waiting& waiting) {
      return std::tuple(-static_cast<double>(bucket_of(waiting).passes),
                        waiting.entry.strict_priority, -served_[policy_class][waiting.entry.tenant],
                        score(waiting, now), -static_cast<double>(waiting.ticket));
    };
    const bool barred = !only && in_order_.second >= ClassQueues::kInOrder / 2;
    const Waiting* best = nullptr;
    for (const Waiting& waiting : all_) {
      if (waiting.policy_class != policy_class || !may_be_tried(waiting) ||
          (barred && newcomer(waiting)) || (only && waiting.entry.awaits != *only))
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
  std::set<Ticket> aside_;
  std::map<Bucket, BucketState> buckets_;         // where somebody is
  std::pair<std::size_t, std::size_t> in_order_;  // passes, and those of newcomers
  std::pair<std::size_t, std::size_t> by_age_;
  bool aged_ = false;
  std::uint64_t sequence_ = 0;
};

}  // namespace baton::scheduling
