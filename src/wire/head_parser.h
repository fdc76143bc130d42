// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "wire/http_message.h"

#include <string_view>

namespace baton::wire {

// Parses one complete head, from its first line to its blank line, that a LineScanner accepted.
// llhttp reads it; input that llhttp tolerates but a proxy must not is refused here.
Result<RequestHead> parse_request_head(std::string_view text);    // InvalidRequest
Result<ResponseHead> parse_response_head(std::string_view text);  // EngineProtocol

}  // namespace baton::wire
