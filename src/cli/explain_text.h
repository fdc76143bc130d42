// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"

#include <string>
#include <string_view>

namespace baton::cli {

// The answer to GET /v1/decisions/{id} as text: the choice, each candidate's cost and the reason it
// was not taken, and the request's outcome. An error if it is no such answer.
Result<std::string> explanation(std::string_view json);

// The same of GET /v1/decisions: the ids, one on a line.
Result<std::string> recent_requests(std::string_view json);

}  // namespace baton::cli
