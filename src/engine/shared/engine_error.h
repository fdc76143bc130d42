// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/error.h"
#include "core/result.h"
#include "wire/http_message.h"

#include <optional>
#include <string>
#include <string_view>

namespace baton::engine {

// Translates an engine's refusal into an error for the client. Engines write their errors in four
// shapes; this reads all of them.
Error read_engine_error(int status, std::string_view body,
                        std::optional<std::string_view> retry_after);

// The `type` of the error an engine wrote into such a body; empty where there is none.
std::string error_type_of(std::string_view body);

// The same of a whole answer. A client error (EngineRejected) carries the answer itself, which the
// client gets byte for byte; not where it is empty, could not be read to its end or is compressed,
// which no client was asked about, nor where it quotes our leg and with it where KV blocks are.
Error read_refusal(const wire::ResponseHead& head, Result<std::string> body);

// The error inside a stream's event `{"error": …}`. Before the first piece of the answer its code
// tells whose fault it was: SGLang refuses a grammar, or a prompt that does not fit its cache, only
// in its scheduler, after status 200. Later errors are the worker's fault, whatever the code:
// engines then use 400 for any exception.
enum class StreamBegun { No, Yes };
Error read_stream_error(std::string_view event_data, StreamBegun begun);

}  // namespace baton::engine
