// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/shared/stream_event.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace baton::engine {

// Role. Reads the events of one stream. Nearly all are like one before and differ only in a token's
//   text; of such an event only the text is parsed, the rest is compared.
// Confinement. One thread at a time.
// Lifetime. One stream, with all its workers.
// Invariants. The result is that of read_stream_event() for every event, sound or not.
class StreamEventReader {
 public:
  StreamEvent read(std::string_view data);

 private:
  // From the known one, at most.
  bool differs_in_text(std::string_view data) const;
  void learn(std::string_view data);

  // A sound event with a token, and without finish or usage; without the text of its token.
  std::string known_;
  std::uint32_t text_at_ = 0;  // where that was
  std::uint32_t spent_ = 0;    // on learning, lately
};

}  // namespace baton::engine
