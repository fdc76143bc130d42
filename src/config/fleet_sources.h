// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "config/document.h"
#include "config/reader.h"

namespace baton::config {

// Reads the sources of workers and their checks: `etcd`, `health`, `canary` and `probe`. `root` is
// the node of `section`. No problem ever shows the password.
void read_fleet_sources(const Node& root, const Section& section, Config& config,
                        Problems& problems);

}  // namespace baton::config
