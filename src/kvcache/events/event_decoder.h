// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "kvcache/events/event.h"
#include "wire/msgpack_reader.h"

#include <cstdint>
#include <optional>

namespace baton::kvcache {

// A batch is [timestamp, events, rank].
struct BatchOpening {
  double timestamp = 0;
  std::uint32_t events = 0;  // the reader stands before the first
  std::uint32_t rest = 0;    // values behind the events
};
Result<BatchOpening> open_batch(wire::MsgpackReader& reader);
// Reads what follows the events: the rank.
Result<std::optional<std::uint32_t>> close_batch(wire::MsgpackReader& reader,
                                                 const BatchOpening& opening);

enum class Decoded : std::uint8_t { Event, UnknownType, Malformed, TooLarge, Broken };
// The next event, in whichever encoding it is. The reader moves past it, unless it breaks.
Decoded decode_event(wire::MsgpackReader& reader, Event& event);
// The same, but merges the following events, `most` in all, that remove a block as this one does
// into one event with their number. vLLM reports each block by itself. If the event after them is
// cut off the reader is broken already, and the next call says so.
// Requires: `most` above 0.
Decoded decode_events(wire::MsgpackReader& reader, Event& event, std::uint32_t most);

}  // namespace baton::kvcache
