// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/shared/introspection.h"
#include "model/worker.h"

#include <expected>
#include <string>

namespace baton::sidecar {

// Given facts about an engine; the others are asked of the engine itself.
struct Introduction {
  model::Announcement announcement;  // without a model: the first one the engine serves
  bool asks_data_parallel_size = true;
};

// The announcement: `said`, completed by the engine's `facts`. If the engine contradicts it or
// leaves something open: the problem and its remedy.
std::expected<model::Announcement, std::string> introduce(const Introduction& said,
                                                          const engine::Facts& facts);

}  // namespace baton::sidecar
