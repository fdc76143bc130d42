// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/published.h"
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
    std::shared_ptr<const Worker> worker;
    std::optional<std::uint32_t> rank;
    std::int64_t load;    // requests running there
    double preference;    // factor of preferred taints
    double score;         // (load + 1) · preference; the lower the better, for policies that look
    std::string why_not;  // empty: it can
  };
  std::size_t picked;  // of candidates
  std::vector<Candidate> candidates;
};

// The workers of a set at one moment.
struct Members {
  struct Candidate {
    std::size_t worker;  // of workers
    std::uint32_t rank;
  };
  std::vector<std::shared_ptr<Worker>> workers;
  std::vector<Candidate> candidates;  // rank by rank, so that turns go round the workers
};

// Role. The workers of one role of one namespace of a model, and the policy that picks among them.
// Confinement. Any thread; add and remove: one at a time.
// Invariants. A candidate is a worker and a rank. A pin is taken or refused, never replaced; only
//   what a request asked for is refused as its mistake (InvalidRouting), what the fleet lacks is
//   NoWorkers (nobody there) or NoEligibleWorker (nobody who may). A worker nobody has heard of, or
//   that pushed back, gets a request only where no better one may have it.
class WorkerSet {
 public:
  WorkerSet(model::Role role, model::Policy policy)
      : role_(role), policy_(policy), selector_(policy) {}

  void add(std::shared_ptr<Worker> worker);
  void remove(const Worker& worker);
  bool empty() const { return size() == 0; }
  std::size_t size() const { return members()->workers.size(); }
  std::shared_ptr<const Members> members() const { return members_.get(); }
  // By name, host:port or number; null where there is none.
  std::shared_ptr<Worker> find(std::string_view name) const;
  // Some worker may have a request.
  bool any_available() const;

  // Picks and counts in one step: what was chosen is what is used.
  Result<Booking> book(const Wish& wish, const Random& random);
  // What `book` would do, without doing it: nothing is counted, nobody's turn is used up.
  Result<Choice> peek(const Wish& wish, const Random& random) const;
  // `book` would find somebody.
  bool can_serve(const Wish& wish) const;

 private:
  class Round;  // one look at the set
  friend class Round;

  // What a request says to name a worker of this role, and its rank.
  std::string_view worker_header() const;
  std::string_view rank_header() const;

  model::Role role_;
  model::Policy policy_;
  Published<Members> members_;
  mutable routing::Selector selector_;
};

}  // namespace baton::fleet
