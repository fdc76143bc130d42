// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/fleet.h"
#include "fleet/source.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::api {

struct Readiness {
  bool ready;
  std::string json;
};

// Whether one model can serve, with the workers present and missing by namespace and role.
Readiness readiness_of(const fleet::Model& model);

// The path of one model, up to its name.
inline constexpr std::string_view kModelsBelow = "/v1/models/";

// The answer to `MODEL/ready` below /v1/models/; nullopt if the path is no such question or the
// model is unknown. A model may be called `something/ready` itself: its own name wins.
std::optional<Readiness> find_readiness(const fleet::Fleet& fleet, std::string_view below_models);

// The same of all models: ready where some model is, and the process is not about to end.
Readiness readiness_of(const fleet::Fleet& fleet, const std::vector<fleet::SourceStatus>& sources,
                       bool draining);

}  // namespace baton::api
