// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/shared/introspection.h"
#include "model/worker.h"

#include <expected>
#include <string>

namespace baton::sidecar {

// What is said of an engine that offers itself. The rest is asked of it.
struct Introduction {
  model::Announcement announcement;  // without a model: the first one the engine serves
  bool asks_data_parallel_size = true;
};

// What is announced after the engine has been asked: what was said, completed by `facts`; or, where
// the engine denies it or leaves something open, what is wrong and what to do.
std::expected<model::Announcement, std::string> introduce(const Introduction& said,
                                                          const engine::Facts& facts);

}  // namespace baton::sidecar
