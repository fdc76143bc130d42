// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"

#include <string>
#include <vector>

namespace baton::config {

// The paths of the keys that differ and count only from the next start on: all but `models`. What a
// file gave is named by the key it belongs to: api_keys, admin_keys, etcd.password_file.
std::vector<std::string> needs_restart(const Config& before, const Config& after);

}  // namespace baton::config
