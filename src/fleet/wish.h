// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/worker.h"
#include "model/worker.h"
#include "routing/affinity.h"
#include "routing/constraints.h"
#include "routing/hints.h"

#include <optional>
#include <string>
#include <vector>

namespace baton::fleet {

// Workers a request must not be sent to again.
using Excluded = std::vector<model::WorkerId>;

// What one leg of a request asks of its worker. The plain one asks nothing.
struct Wish {
  std::optional<routing::Pin> pin;  // this one, also if it is excluded
  std::optional<std::vector<std::string>> allowed;
  routing::Constraints constraints;
  Excluded excluded;                       // those that failed it
  std::optional<model::HandoffMode> mode;  // that of the other leg
  bool whatever_policy = false;  // somebody must be found, also where requests name their workers
  Standing worst = Standing::Spare;  // rather one this bad than nobody
  // Where its session has been served; taken if it can be. The booking's seat tells.
  std::optional<routing::Seat> affinity;
};

Wish wish_for(model::Role role, const routing::Hints& hints);

}  // namespace baton::fleet
