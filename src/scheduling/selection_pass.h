// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/random.h"
#include "core/result.h"
#include "fleet/members.h"
#include "fleet/worker_set.h"
#include "scheduling/adapter_placement.h"
#include "scheduling/candidate_scorer.h"
#include "scheduling/worker_requirements.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace baton::scheduling {

// Role. One look at a set, for one requirement: workers that join or leave meanwhile have no
//   effect.
// Confinement. One call of the set.
// Size. Many methods, most of a few lines: questions about one candidate, and one for each rule of
//   what excludes it.
class SelectionPass {
 public:
  SelectionPass(const fleet::WorkerSet& set, const WorkerRequirements& requirements);

  enum class Turn { Take, Look };
  // Index of the candidate; `Turn` says whether the cursor moves.
  Result<std::size_t> choose(const Random& random, Turn turn) const;
  Result<std::size_t> pinned(const Pin& pin) const;
  bool can_serve() const;

  const std::shared_ptr<fleet::Worker>& worker(std::size_t i) const { return members_->worker(i); }
  std::uint32_t rank(std::size_t i) const { return members_->candidates[i].key.rank; }
  std::int64_t load(std::size_t i) const { return members_->candidates[i].load->requests(); }
  std::size_t size() const { return members_->candidates.size(); }
  std::string why_not(const fleet::Worker& worker) const;
  bool is_busy(std::size_t i) const;
  // An objective bounds the batches for this part of the request.
  bool bounds_batches() const { return bounds_batches_; }
  // It has as many requests as it can have so that their tokens keep the objective, or more.
  bool is_full(std::size_t i) const {
    return bounds_batches_ && load(i) >= worker(i)->batch_limit(rank(i)).most();
  }
  // It has no more than a moment to do.
  bool has_room(std::size_t i) const;
  // It is busy, or, with late binding, has more than a moment's work.
  bool is_crowded(std::size_t i) const;
  // The candidate that choose() found best but too busy to take the request now; nothing: no such
  // one.
  std::optional<std::size_t> late_choice() const { return late_choice_; }
  // Null if the policy scores nothing.
  const CandidateScorer* scorer() const { return scorer_ ? &*scorer_ : nullptr; }
  fleet::Time now() const { return now_; }

 private:
  // Why a worker cannot have a request, in the order it is asked. Later reasons are nearer misses.
  enum class Refusal { NotAllowed, Down, Excluded, OtherMode, MissingTaint, NoAdapter, None };

  // A request that names a worker may have one that has failed others.
  bool is_out(const fleet::Worker& worker) const {
    return worker.tier(now_) >
           (requirements_.pin ? std::max(requirements_.worst, fleet::EligibilityTier::Doubtful)
                              : requirements_.worst);
  }
  Refusal refusal(const fleet::Worker& worker) const;
  // The same, were it for the model itself.
  Refusal refusal_of_base(const fleet::Worker& worker) const;
  // The best tier among the allowed workers; nothing if none is allowed.
  std::optional<fleet::EligibilityTier> best_tier() const;
  template <class Pick>
  std::optional<std::size_t> choose_by_preference(Pick pick, fleet::EligibilityTier worst) const;
  // The same, but without full ranks as long as another one is not full.
  template <class Eligible>
  auto with_places(Eligible eligible) const;
  Result<std::size_t> choose_by_weight(const Random& random) const;
  // The same one, unless it is to be waited for.
  Result<std::size_t> unless_late(std::size_t chosen) const;
  // The session should leave that rank.
  bool is_left(std::size_t candidate) const;
  // That rank costs so much more that the session should leave it.
  bool is_dearer(std::size_t candidate, std::size_t than) const;
  // The same candidate, compared with itself so that its score is known.
  Result<std::size_t> weighed(Result<std::size_t> only) const;
  Error none_eligible() const;
  Error all_busy() const;
  std::optional<std::size_t> find_rank(const RankId& id) const;
  std::optional<std::size_t> index_of(const fleet::Worker& worker, std::uint32_t rank) const;

  const fleet::WorkerSet& set_;
  const WorkerRequirements& requirements_;
  std::shared_ptr<const fleet::Members> members_;
  fleet::Time now_;
  bool bounds_batches_;
  std::optional<AdapterPlacement> placement_;  // nothing: any worker is allowed
  mutable std::optional<CandidateScorer> scorer_;
  mutable std::optional<std::size_t> late_choice_;
};

}  // namespace baton::scheduling
