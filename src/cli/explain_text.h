// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"

#include <string>
#include <string_view>

namespace baton::cli {

// The answer to GET /v1/decisions/{id} for people: what was chosen, what each candidate would have
// cost and why it was not taken, and what became of the request. An error where it is no such answer.
Result<std::string> explanation(std::string_view json);

// The same of GET /v1/decisions: the ids, one on a line.
Result<std::string> recent_requests(std::string_view json);

}  // namespace baton::cli
