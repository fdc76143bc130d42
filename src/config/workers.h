// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/document.h"
#include "config/reader.h"
#include "model/worker.h"

#include <optional>
#include <string_view>

namespace baton::config {

inline constexpr std::string_view kWorkerPattern = "models[].workers[]";

// One worker, checked as far as it can be by itself; nothing where a value could not be read.
// `section` is that of `node`, under kWorkerPattern.
std::optional<model::WorkerSpec> read_worker(const Node& node, const Section& section,
                                             Problems& problems);

}  // namespace baton::config
