// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "wire/http_message.h"

namespace baton::pipeline {

enum class ForwardAuthorization { No, Yes };

// The client's headers a worker gets: all but those that belong to the connection, to Baton, or
// that would change how the body is coded. Each leg adds its own X-Request-Id.
wire::Headers headers_for_worker(const wire::Headers& client, ForwardAuthorization authorization);

// The worker's headers the client gets.
wire::Headers headers_for_client(const wire::Headers& worker);

}  // namespace baton::pipeline
