// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"

#include <string_view>

namespace baton::scheduling {

// Whether a request may choose its workers.
enum class Trusted { No, Yes };

// By the address of the request's connection; text that is no address is trusted only if every
// source is.
Trusted trust_in(const config::Trust& trust, std::string_view source);

}  // namespace baton::scheduling
