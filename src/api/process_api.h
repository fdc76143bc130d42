// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "http/routes.h"

#include <string>
#include <vector>

namespace baton::api {

// Routes that programs call before they use an OpenAI-compatible server: GET /health and /ping,
// which tell that the process serves and nothing of its models or workers, and GET /version. None
// of them needs a key.
std::vector<http::Route> process_routes(std::string version);

}  // namespace baton::api
