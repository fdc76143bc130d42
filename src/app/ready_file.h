// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "model/worker.h"

#include <string>

namespace baton::app {

// Writes `host:port` and a line end to `path`, all at once: whoever finds the file can read all of
// it.
Result<void> write_ready_file(const std::string& path, const model::Endpoint& address);

}  // namespace baton::app
