// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/routing.h"
#include "fleet/adapter_request.h"
#include "fleet/worker.h"
#include "model/worker.h"
#include "scheduling/policy/affinity.h"
#include "scheduling/policy/constraints.h"
#include "scheduling/policy/hints.h"
#include "scheduling/policy/known_prompt.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace baton::scheduling {

struct CandidateScore;

// Workers a request must not be sent to again.
using Excluded = std::vector<model::WorkerId>;

// Which part of a request a worker is to do.
enum class Part : std::uint8_t {
  Both,
  Prefill,
  Decode,  // a prefill worker has computed the prompt
};

// A worker is busy if it has more prefill tokens than this to compute, or than this multiple of its
// batch.
struct BusyThreshold {
  std::optional<std::uint64_t> tokens;
  std::optional<double> share;
  bool late = false;  // the best one has more than a moment to do
  // True if a worker can cross it.
  bool draws_a_line() const { return tokens || share; }
  bool crossed_by(const fleet::Worker& worker, double prefill_tokens) const;
};

// The demands of one leg on its worker. A default one demands nothing.
struct WorkerRequirements {
  std::optional<Pin> pin;  // this one, also if it is excluded
  std::optional<std::vector<std::string>> allowed;
  Constraints constraints;
  std::optional<fleet::AdapterRequest> adapter;  // nothing: the model itself
  Excluded excluded;                             // those that failed it
  std::optional<model::HandoffMode> mode;        // that of the other leg
  bool whatever_policy = false;                  // a choice is needed, also under the policy direct
  fleet::EligibilityTier worst = fleet::EligibilityTier::Spare;  // accepted if none is better
  // The rank that served its session; taken if possible. The booking says which rank was taken.
  std::optional<RankId> affinity;
  Part part = Part::Both;
  // Whether the router will see when the prompt is computed: not if the answer comes as a whole.
  bool observed = true;
  std::shared_ptr<const KnownPrompt> prompt;  // null: nothing is known of it
  std::optional<BusyThreshold> busy;          // a worker that crossed it is passed over now
  // Called with the worker to be chosen, if the policy scores: false, and none is chosen.
  std::function<bool(const fleet::Worker&, const CandidateScore&)> accept;
  std::optional<std::uint64_t> expected_output;  // in tokens
  // The cost options, if not the model's.
  std::optional<config::Cost> cost;
};

WorkerRequirements requirements_for(model::Role role, const Hints& hints);

}  // namespace baton::scheduling
