// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"

#include <string>
#include <vector>

namespace baton::config {

// The paths of the changed keys that apply only after a restart: all but `models`. A file's
// contents are named by their key: api_keys, admin_keys, etcd.password_file.
std::vector<std::string> needs_restart(const Config& before, const Config& after);

}  // namespace baton::config
