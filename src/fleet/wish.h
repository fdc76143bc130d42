// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/routing.h"
#include "fleet/known_prompt.h"
#include "fleet/worker.h"
#include "model/worker.h"
#include "scheduling/policy/affinity.h"
#include "scheduling/policy/constraints.h"
#include "scheduling/policy/hints.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace baton::fleet {

struct Weight;

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
struct BusyLine {
  std::optional<std::uint64_t> tokens;
  std::optional<double> share;
  bool late = false;  // the best one has more than a moment to do
  // Where the request is to be counted that has to wait for its best one; null: nowhere.
  scheduling::Awaiting* awaiting = nullptr;
  // Gets who that is; null: nobody wants to know.
  std::optional<scheduling::SeatKey>* favourite = nullptr;
  // The request was counted among those that came, however often it is tried; null: it is tried once.
  bool* counted = nullptr;
  // Somebody could have crossed it.
  bool draws_a_line() const { return tokens || share; }
  bool crossed_by(const Worker& worker, double prefill_tokens) const;
};

// The adapter that a request is for.
struct AdapterWish {
  std::string name;
  bool on_demand = false;  // a worker that has not loaded it does so when it is asked
};

// What one leg of a request asks of its worker. The plain one asks nothing.
struct Wish {
  std::optional<scheduling::Pin> pin;  // this one, also if it is excluded
  std::optional<std::vector<std::string>> allowed;
  scheduling::Constraints constraints;
  std::optional<AdapterWish> adapter;      // nothing: the model itself
  Excluded excluded;                       // those that failed it
  std::optional<model::HandoffMode> mode;  // that of the other leg
  bool whatever_policy = false;  // somebody must be found, also where requests name their workers
  Standing worst = Standing::Spare;  // rather one this bad than nobody
  // Where its session has been served; taken if it can be. The booking's seat tells.
  std::optional<scheduling::Seat> affinity;
  Part part = Part::Both;
  // Whether anybody will see when its prompt has been computed: not where only a whole answer comes.
  bool observed = true;
  std::shared_ptr<const KnownPrompt> prompt;  // null: nothing is known of it
  std::optional<BusyLine> busy;               // whoever has crossed it cannot have the request now
  // Asked of the one that would be chosen, where the policy weighs: false, and nobody is.
  std::function<bool(const Worker&, const Weight&)> accept;
  std::optional<std::uint64_t> expected_output;  // in tokens
  // What it costs to serve where, if not as the model's options say.
  std::optional<config::Cost> cost;
};

Wish wish_for(model::Role role, const scheduling::Hints& hints);

}  // namespace baton::fleet
