// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/error.h"

#include <optional>
#include <string_view>

namespace baton::engine {

// What an engine's refusal means to our client. Engines write their errors in four shapes; this
// reads them all.
Error read_engine_error(int status, std::string_view body,
                        std::optional<std::string_view> retry_after);

// The error inside a stream's event `{"error": …}`: the worker failed after it had begun.
Error read_stream_error(std::string_view event_data);

}  // namespace baton::engine
