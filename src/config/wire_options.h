// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/reader.h"
#include "model/trtllm_auth.h"

#include <string>
#include <vector>

namespace baton::config {

// Reads which parts of a client's request are withheld from workers, and how requests to them are
// signed.

std::vector<std::string> read_stripped_fields(const Section& root, Problems& problems);
// In lower case.
std::vector<std::string> read_stripped_headers(const Section& root, Problems& problems);
void read_trtllm_auth(const Section& root, model::TrtllmAuth& auth);

}  // namespace baton::config
