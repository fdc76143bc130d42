// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/fleet.h"
#include "fleet/source.h"

#include <string>
#include <vector>

namespace baton::front {

struct Readiness {
  bool ready;
  std::string json;
};

// Whether one model can serve, and by namespace and role who is there and what is missing.
Readiness readiness_of(const fleet::Model& model);

// The same of all models: ready where some model is, and the process is not about to end.
Readiness readiness_of(const fleet::Fleet& fleet, const std::vector<fleet::SourceStatus>& sources,
                       bool draining);

}  // namespace baton::front
