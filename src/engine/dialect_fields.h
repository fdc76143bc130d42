// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/dialect.h"
#include "wire/json_object.h"

#include <array>
#include <string_view>

namespace baton::engine {

// Fields that carry a hand-off, in any dialect. A client has no business with them: it could read
// another request's KV cache.
inline constexpr std::array<std::string_view, 6> kHandoffFields{
    "kv_transfer_params", "bootstrap_host",       "bootstrap_port",
    "bootstrap_room",     "disaggregated_params", "disagg_prefill_dp_rank"};

// The start of every leg's body: the client's, with the name the workers know and without hand-off
// fields.
wire::JsonSplice leg_body(const ClientCall& call);

// Shapes a leg that is wanted for its KV cache, not for its text: one token, not streamed.
void shape_as_single_token(wire::JsonSplice& splice, const wire::JsonObject& body);

}  // namespace baton::engine
