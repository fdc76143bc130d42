// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "model/worker.h"

#include <optional>
#include <string_view>

namespace baton::sim {

// `<scheme>host:port`, an IPv6 host in brackets. The scheme (with its slashes) must be there; empty
// means that there is none.
std::optional<model::Endpoint> parse_address(std::string_view scheme, std::string_view text);

}  // namespace baton::sim
