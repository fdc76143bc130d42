// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/shared/completion_json.h"

#include <optional>
#include <string_view>

namespace baton::engine {

// Parsed data of one streamed event.
struct StreamEvent {
  enum class Kind {
    Chunk,      // a piece of the answer
    Done,       // [DONE]
    Error,      // the engine gave up, and says why
    Aborted,    // the engine gave up: a choice "finished" with abort or error
    Malformed,  // not JSON: the stream cannot be trusted any more
  };
  Kind kind;
  bool has_token = false;   // a choice has text, a part of a delta other than its role, token ids,
                            // log-probabilities or its finish_reason, and it is not empty
  bool has_finish = false;  // a choice has its finish_reason
  std::optional<Usage> usage;
};

// Looks at every byte: a stream is relayed as a success only if each of its events is one.
StreamEvent read_stream_event(std::string_view data);

}  // namespace baton::engine
