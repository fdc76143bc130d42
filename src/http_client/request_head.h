// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "wire/http_message.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace baton::http_client {

// Request line and headers for a worker, closing blank line included. `own` are further header
// lines, each with its line end. A body is JSON, and said to be.
std::string request_head(std::string_view method, std::string_view path, std::string_view authority,
                         const wire::Headers& headers, std::size_t content_length,
                         std::string_view own = {});

}  // namespace baton::http_client
