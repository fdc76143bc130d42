// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "wire/http_message.h"

#include <span>
#include <string>

namespace baton::pipeline {

enum class ForwardAuthorization { No, Yes };

// The client's headers for a worker: all but those that belong to the connection, to Baton, or that
// would change how the body is coded. Each leg adds its own X-Request-Id. `stripped` are further
// names in lower case to leave out; one that ends with * is a prefix.
wire::Headers headers_for_worker(const wire::Headers& client, ForwardAuthorization authorization,
                                 std::span<const std::string> stripped = {});

// The worker's headers the client gets.
wire::Headers headers_for_client(const wire::Headers& worker);

}  // namespace baton::pipeline
