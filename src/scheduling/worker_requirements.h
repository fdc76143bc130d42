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

// When a worker is busy: it has more prefill tokens than this to compute, or than this many times
// what it batches.
struct BusyThreshold {
  std::optional<std::uint64_t> tokens;
  std::optional<double> share;
  bool late = false;  // the best one has more than a moment to do
  // Somebody could have crossed it.
  bool draws_a_line() const { return tokens || share; }
  bool crossed_by(const fleet::Worker& worker, double prefill_tokens) const;
};

// What one leg of a request asks of its worker. The plain one asks nothing.
struct WorkerRequirements {
  std::optional<Pin> pin;  // this one, also if it is excluded
  std::optional<std::vector<std::string>> allowed;
  Constraints constraints;
  std::optional<fleet::AdapterRequest> adapter;  // nothing: the model itself
  Excluded excluded;                             // those that failed it
  std::optional<model::HandoffMode> mode;        // that of the other leg
  bool whatever_policy = false;  // somebody must be found, also where requests name their workers
  fleet::EligibilityTier worst = fleet::EligibilityTier::Spare;  // rather one this bad than nobody
  // Where its session has been served; taken if it can be. The booking's seat tells.
  std::optional<RankId> affinity;
  Part part = Part::Both;
  // Whether anybody will see when its prompt has been computed: not where only a whole answer comes.
  bool observed = true;
  std::shared_ptr<const KnownPrompt> prompt;  // null: nothing is known of it
  std::optional<BusyThreshold> busy;          // whoever has crossed it cannot have the request now
  // Asked of the one that would be chosen, where the policy weighs: false, and nobody is.
  std::function<bool(const fleet::Worker&, const CandidateScore&)> accept;
  std::optional<std::uint64_t> expected_output;  // in tokens
  // What it costs to serve where, if not as the model's options say.
  std::optional<config::Cost> cost;
};

WorkerRequirements requirements_for(model::Role role, const Hints& hints);

}  // namespace baton::scheduling
