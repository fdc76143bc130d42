// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/completion_json.h"

#include <optional>
#include <string_view>

namespace baton::engine {

// What the data of one streamed event is.
struct StreamEvent {
  enum class Kind {
    Chunk,      // a piece of the answer
    Done,       // [DONE]
    Error,      // the engine gave up, and says why
    Aborted,    // the engine gave up: a choice "finished" with abort or error
    Malformed,  // not JSON: the stream cannot be trusted any more
  };
  Kind kind;
  bool has_content = false;  // it carries choices, so tokens
  bool has_finish = false;   // a choice has its finish_reason
  std::optional<Usage> usage;
};

// Looks at every byte: a stream is relayed as a success only if each of its events is one.
StreamEvent read_stream_event(std::string_view data);

}  // namespace baton::engine
