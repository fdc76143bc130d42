// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/document.h"
#include "config/reader.h"
#include "model/worker.h"

#include <optional>
#include <string>

namespace baton::config {

// One entry of models[].workers, checked as far as it can be by itself; nothing where a value
// could not be read.
std::optional<model::WorkerSpec> read_worker(const Node& node, const std::string& path,
                                             Problems& problems);

}  // namespace baton::config
