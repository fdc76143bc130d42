// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/error.h"
#include "wire/http_message.h"

#include <string>

namespace baton::pipeline {

// The one shape in which errors reach clients: {"error": {"message", "type", "param", "code"}}.
std::string error_body(const Error& error);
// The same as an event of a stream that has already begun.
std::string error_event(const Error& error);
// Content-Type, and Retry-After where waiting helps.
wire::Headers error_headers(const Error& error);

}  // namespace baton::pipeline
