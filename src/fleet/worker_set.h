// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "fleet/wish.h"
#include "fleet/worker.h"
#include "routing/selector.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::fleet {

using Random = std::function<std::uint64_t()>;

// Who could serve a request, and who would.
struct Choice {
  struct Candidate {
    const Worker* worker;
    std::optional<std::uint32_t> rank;
    std::int64_t load;    // requests running there
    double preference;    // factor of preferred taints
    double score;         // (load + 1) · preference; the lower the better, for policies that look
    std::string why_not;  // empty: it can
  };
  std::size_t picked;  // of candidates
  std::vector<Candidate> candidates;
};

// Role. The workers of one role of one model, and the policy that picks among them.
// Confinement. Any thread, once all workers are added.
// Invariants. A candidate is a worker and a rank. A pin is taken or refused, never replaced; only
//   what a request asked for is refused as its mistake (InvalidRouting), what the fleet lacks is
//   NoWorkers (nobody there) or NoEligibleWorker (nobody who may).
class WorkerSet {
 public:
  WorkerSet(model::Role role, model::Policy policy)
      : role_(role), policy_(policy), selector_(policy) {}

  void add(std::unique_ptr<Worker> worker);
  bool empty() const { return workers_.empty(); }
  const std::vector<std::unique_ptr<Worker>>& workers() const { return workers_; }
  // By name, host:port or number; null where there is none.
  Worker* find(std::string_view name) const;
  // Some worker is not Down.
  bool any_available() const;

  // Picks and counts in one step: what was chosen is what is used.
  Result<Booking> book(const Wish& wish, const Random& random);
  // What `book` would do, without doing it: nothing is counted, nobody's turn is used up.
  Result<Choice> peek(const Wish& wish, const Random& random) const;
  // `book` would find somebody.
  bool can_serve(const Wish& wish) const;

 private:
  struct Candidate {
    Worker* worker;
    std::uint32_t rank;
  };
  // Why a worker cannot have a request, in the order it is asked. Later reasons are nearer misses.
  enum class Refusal { NotAllowed, Down, Excluded, OtherMode, MissingTaint, None };
  enum class Turn { Take, Look };

  Refusal refusal(const Worker& worker, const Wish& wish) const;
  std::string why_not(const Worker& worker, const Wish& wish) const;
  // Index of the candidate; `Turn` says whether the cursor moves.
  Result<std::size_t> choose(const Wish& wish, const Random& random, Turn turn) const;
  template <class Pick>
  std::optional<std::size_t> choose_by_preference(const Wish& wish, Pick pick) const;
  Result<std::size_t> pinned(const routing::Pin& pin, const Wish& wish) const;
  Error none_eligible(const Wish& wish) const;
  std::optional<std::size_t> seated(const routing::Seat& seat, const Wish& wish) const;
  std::optional<std::size_t> index_of(const Worker& worker, std::uint32_t rank) const;
  // What a request says to name a worker of this role, and its rank.
  std::string_view worker_header() const;
  std::string_view rank_header() const;
  std::int64_t load(std::size_t i) const {
    return candidates_[i].worker->in_flight(candidates_[i].rank);
  }

  model::Role role_;
  model::Policy policy_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Candidate> candidates_;  // rank by rank, so that turns go round the workers
  mutable routing::Selector selector_;
};

}  // namespace baton::fleet
