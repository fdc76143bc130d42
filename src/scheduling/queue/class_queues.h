// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/routing.h"
#include "scheduling/queue/class_queue.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace baton::scheduling {

using Clock = std::chrono::steady_clock;
using Ticket = std::uint64_t;  // a place in the queue; they ascend and are never given twice

// A waiting request.
struct Entry {
  std::uint32_t strict_priority = 0;
  double priority_jump = 0;  // seconds; below zero counts as zero
  std::string tenant;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;  // of those
  WaitKey awaits;
  Clock::time_point arrival;
  double compute_seconds = 0;                // for what is not cached
  std::optional<Clock::time_point> by = {};  // when it must have a worker, if it has an objective
  double delay = 0;                          // see ClassQueue::delay
  std::optional<Clock::time_point> until = {};  // see ClassQueue::pass
  bool behind = false;                          // all others of its class, whatever its priority

  std::uint64_t uncached_tokens() const {
    return prompt_tokens > cached_tokens ? prompt_tokens - cached_tokens : 0;
  }
};

enum class LimitKind : std::uint8_t { Requests, RawIslTokens, CachedTokens };
std::string_view to_string(LimitKind kind);

// Why there is no place in the queue.
struct Refusal {
  std::string policy_class;
  LimitKind kind = LimitKind::Requests;
  std::uint64_t current = 0;
  std::uint64_t limit = 0;
  std::uint64_t own = 0;  // its own share; more than the limit: it can never wait
  bool operator==(const Refusal&) const = default;
};

// Sums over the waiting requests.
struct Totals {
  std::size_t requests = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t uncached_tokens = 0;
  bool operator==(const Totals&) const = default;
};

// Role. The requests that wait for the workers of a model and namespace, their order, and the
//   refusals. Classes share by deficit round robin, by tokens to compute.
// Confinement. None of its own: its owner locks. No I/O; times are passed in, and one that is
//   before the last is taken for the last.
// Invariants. A class whose turn it is keeps it, and its deficit, until it has spent the deficit,
//   is empty, or another class was served because all of its own requests were passed over. A class
//   that empties loses its deficit. A limit is never crossed. A request that is not among the first
//   in order has its turn by age: of N buckets each is tried in one of N / kByAge rounds, whatever is
//   before it.
class ClassQueues {
 public:
  // Limits on requests passed over in one round: in order, and then the longest untried. Half of
  // either may be newcomers.
  static constexpr std::size_t kInOrder = 48;
  static constexpr std::size_t kByAge = 16;

  // Requires: there is a class.
  ClassQueues(const config::Queue& config, Clock::time_point now);

  // Limits count for each of `workers`.
  std::expected<Ticket, Refusal> add(std::size_t policy_class, const Entry& entry,
                                     std::size_t workers, Clock::time_point now);

  // All requests may be tried again.
  void begin_round(Clock::time_point now);
  // The request whose turn it is; unchanged until it has been taken, passed over or removed, or one
  // with precedence has come. None: no request is left to try in this round.
  std::optional<Ticket> next(Clock::time_point now);
  // These do nothing if the ticket's holder has left.
  void taken(Ticket ticket, Clock::time_point now);
  // For this round; see ClassQueue.
  void pass(Ticket ticket, const WaitKey& awaited, Clock::time_point now,
            std::optional<Clock::time_point> until = {});
  void remove(Ticket ticket, Clock::time_point now);  // unserved
  // From now on it waits behind all others of its class.
  void put_behind(Ticket ticket, Clock::time_point now);

  // Whether this round has shown that it would be passed over.
  bool passed(Ticket ticket) const;
  const Totals& totals(std::size_t policy_class) const { return classes_[policy_class].totals; }
  std::size_t size() const { return places_.size(); }
  // The work of its class that would be served before a new request.
  Work before(std::size_t policy_class, const Entry& entry) const;
  // See ClassQueue.
  double delay(std::size_t policy_class, const Entry& entry, Clock::time_point now,
               const ClassQueue::Forecast& forecast) const;

 private:
  struct PolicyClass {
    config::QueueClass config;
    ClassQueue members;
    Totals totals;
    std::uint64_t passed_cost = 0;  // of the last one that was passed over
  };
  struct Place {
    ClassQueue::Member member;
    std::string tenant;
    std::size_t policy_class = 0;
    Totals weight;
  };
  // State of deficit round robin, in tokens.
  struct Turn {
    std::size_t of = 0;    // the class whose turn it is
    bool granted = false;  // it has got its quantum for this turn
    std::vector<std::uint64_t> deficits;
  };

  // Requests passed over in this round, and the newcomers among them.
  struct Passes {
    std::size_t all = 0;
    std::size_t newcomers = 0;
  };

  double seconds(Clock::time_point time);
  double since_beginning(Clock::time_point time) const;
  ClassQueue::Member member_of(const Entry& entry) const;
  std::optional<Ticket> next_in_order(double now);
  std::optional<Ticket> next_by_age(double now);
  std::optional<Refusal> refuse(const PolicyClass& wanted, const Totals& weight,
                                std::size_t workers) const;
  void end_turn(bool none_to_try);
  void grant_in_bulk(const std::vector<ClassQueue::Member*>& firsts);
  void forget(Ticket ticket);

  bool fair_tenants_;
  Clock::time_point beginning_;
  double now_ = 0;
  Ticket last_ticket_ = 0;
  std::vector<PolicyClass> classes_;
  std::unordered_map<Ticket, Place> places_;
  Turn turn_;   // as of the last one served
  Turn trial_;  // and the round's position since
  Passes in_order_;
  Passes by_age_;
  bool aged_ = false;  // the last turn was given by age
};

}  // namespace baton::scheduling
