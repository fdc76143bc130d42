// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/error.h"
#include "wire/http_message.h"

#include <string>

namespace baton::pipeline {

// The one shape of Baton's errors: {"error": {"message", "type", "param", "code"}}; or the engine's
// answer, if the error is its refusal of the request.
std::string error_body(const Error& error);
// The same as an event of a stream that has already begun, always in Baton's shape.
std::string error_event(const Error& error);
// Content-Type of that body, and Retry-After if waiting helps.
wire::Headers error_headers(const Error& error);

}  // namespace baton::pipeline
