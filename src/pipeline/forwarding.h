// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "wire/http_message.h"

#include <string_view>

namespace baton::pipeline {

enum class ForwardAuthorization { No, Yes };

// The client's headers a worker gets: all but those that belong to the connection, to Baton, or
// that would change how the body is coded. `request_id` takes the place of whatever the client
// sent.
wire::Headers headers_for_worker(const wire::Headers& client, std::string_view request_id,
                                 ForwardAuthorization authorization);

// The worker's headers the client gets.
wire::Headers headers_for_client(const wire::Headers& worker);

}  // namespace baton::pipeline
