// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/error.h"
#include "core/random.h"
#include "core/result.h"
#include "fleet/worker_set.h"
#include "model/worker.h"
#include "scheduling/candidate_scorer.h"
#include "scheduling/policy/rank_load.h"
#include "scheduling/worker_requirements.h"

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Books a worker for one leg of a request: filter, score, pick and count in one step. The steps are
// those of SelectionPass, which looks at the workers, and of CandidateScorer, which scores them.
namespace baton::scheduling {

// The candidates for a request, and the chosen one.
struct Choice {
  struct Candidate {
    std::shared_ptr<const fleet::Worker> worker;
    std::optional<std::uint32_t> rank;
    std::int64_t load;                     // requests running there
    double preference;                     // factor of preferred taints
    double score;                          // the lower the better, for policies that look
    std::string why_not;                   // empty: it can
    std::optional<CandidateScore> weight;  // if the policy scores prompts
  };
  // The deciding rule.
  enum class By : std::uint8_t { Policy, Name, Session };

  std::size_t picked;  // of candidates
  std::vector<Candidate> candidates;
  std::size_t of = 0;  // how many there were
  By by = By::Policy;
  model::Policy policy = model::Policy::RoundRobin;  // of the workers
};
std::string_view to_string(Choice::By by);

// A worker was booked.
struct Booked {
  fleet::Booking booking;
  std::optional<Choice> choice = {};  // how it was chosen, if asked for
  bool arrival_counted = false;       // see BookingOptions
};

// No worker was booked: the error, and what the request could wait for.
struct NotBooked : Error {
  NotBooked(Error error)
      : Error(std::move(error)) {}  // NOLINT: an error is one without more to say
  // The best rank, if it has no room yet.
  std::optional<RankKey> favourite = {};
  // Counts the request among those that wait for that rank, as long as this lives.
  Awaiting awaiting = {};
  bool arrival_counted = false;  // see BookingOptions
};

struct BookingOptions {
  bool explain = false;
  // The request counts as an arrival of its prompt's beginning. If it can wait, it counts once,
  // also if no worker is booked yet.
  bool count_arrival = true;
};

// Picks a worker and counts the request on it in one step, so that no other booking comes between.
std::expected<Booked, NotBooked> book(fleet::WorkerSet& set, const WorkerRequirements& requirements,
                                      const Random& random, BookingOptions options = {});
// The choice that book() would make, without making it: nothing is counted, no turn is used up.
std::expected<Choice, NotBooked> peek(const fleet::WorkerSet& set,
                                      const WorkerRequirements& requirements, const Random& random);
// Whether book() would find a worker.
bool can_serve(const fleet::WorkerSet& set, const WorkerRequirements& requirements);

}  // namespace baton::scheduling
