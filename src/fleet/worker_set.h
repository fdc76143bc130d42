// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/routing.h"
#include "core/published.h"
#include "core/result.h"
#include "fleet/forecasts.h"
#include "fleet/load_bell.h"
#include "fleet/members.h"
#include "fleet/round.h"
#include "fleet/weighing.h"
#include "fleet/wish.h"
#include "fleet/worker.h"
#include "scheduling/policy/load_ledger.h"
#include "scheduling/policy/popularity.h"
#include "scheduling/policy/selector.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::fleet {

// Who could serve a request, and who would.
struct Choice {
  struct Candidate {
    std::shared_ptr<const Worker> worker;
    std::optional<std::uint32_t> rank;
    std::int64_t load;             // requests running there
    double preference;             // factor of preferred taints
    double score;                  // the lower the better, for policies that look
    std::string why_not;           // empty: it can
    std::optional<Weight> weight;  // where the policy weighs prompts
  };
  // What decided.
  enum class By : std::uint8_t { Policy, Name, Session };

  std::size_t picked;  // of candidates
  std::vector<Candidate> candidates;
  std::size_t of = 0;  // how many there were
  By by = By::Policy;
  model::Policy policy = model::Policy::RoundRobin;  // of the workers
};
std::string_view to_string(Choice::By by);

// Role. The workers of one role of one namespace of a model, and the policy that picks among them.
// Confinement. Any thread; add and remove: one at a time.
// Invariants. A candidate is a worker and a rank. A pin is taken or refused, never replaced; only
//   what a request asked for is refused as its mistake (InvalidRouting), what the fleet lacks is
//   NoWorkers (nobody there) or NoEligibleWorker (nobody who may). A worker nobody has heard of, or
//   that pushed back, gets a request only where no better one may have it.
class WorkerSet {
 public:
  // `forecasts`: judged by what becomes of bookings, and believed accordingly; null: they are believed.
  // `itl`: what tokens come apart at most, for which each worker's batch is bounded; 0: it is not.
  WorkerSet(model::Role role, model::Policy policy, config::Cost cost = {},
            std::shared_ptr<LoadBell> bell = {}, std::shared_ptr<Forecasts> forecasts = {},
            std::chrono::milliseconds itl = {});

  void add(std::shared_ptr<Worker> worker);
  void remove(const Worker& worker);
  bool empty() const { return size() == 0; }
  std::size_t size() const { return members()->workers.size(); }
  model::Role role() const { return role_; }
  model::Policy policy() const { return policy_; }
  const scheduling::LoadLedger& ledger() const { return *ledger_; }
  std::shared_ptr<const Members> members() const { return members_.get(); }
  // By name, host:port or number; null where there is none.
  std::shared_ptr<Worker> find(std::string_view name) const;
  // Some worker may have a request.
  bool any_available() const;
  // Requests that the workers can have more, so that their tokens keep the objective; nothing where
  // there is none, where no worker is there, or where one of them has not met its limit yet.
  std::optional<std::int64_t> free_places() const;

  // Picks and counts in one step: what was chosen is what is used.
  // `told` gets why: the one that was picked first, and the best of the others.
  Result<Booking> book(const Wish& wish, const Random& random, Choice* told = nullptr);
  // What `book` would do, without doing it: nothing is counted, nobody's turn is used up.
  Result<Choice> peek(const Wish& wish, const Random& random) const;
  // `book` would find somebody.
  bool can_serve(const Wish& wish) const;

 private:
  friend class Round;

  // The prompt has come, if it was not counted before.
  void count(const Wish& wish, const Round& round);
  // What a request says to name a worker of this role, and its rank.
  std::string_view worker_header() const;
  std::string_view rank_header() const;

  model::Role role_;
  model::Policy policy_;
  config::Cost cost_;
  std::shared_ptr<scheduling::LoadLedger> ledger_;
  scheduling::Popularity popularity_;
  std::shared_ptr<LoadBell> bell_;
  std::shared_ptr<Forecasts> forecasts_;
  const std::chrono::milliseconds itl_;
  std::mutex choosing_;  // what is weighed and booked is one step
  Published<Members> members_;
  mutable scheduling::Selector selector_;
};

}  // namespace baton::fleet
