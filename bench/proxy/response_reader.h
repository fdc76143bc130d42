// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace baton::bench {

// Role. Takes the bytes of one HTTP/1.1 answer apart: head away, body decoded.
// Invariants. Anything but a complete, well-framed 200 is a failure, and stays one.
class ResponseReader {
 public:
  // Appends what `bytes` hold of the body to `body`. Returns what is wrong, nullptr if nothing is.
  const char* feed(std::string_view bytes, std::string& body);

  // The answer is there whole.
  bool complete() const { return state_ == State::Complete; }

 private:
  enum class State : std::uint8_t {
    Head,
    Length,
    ChunkSize,
    ChunkData,
    ChunkEnd,
    LastLine,
    Complete
  };

  const char* take_head();
  const char* take_line(std::string_view& bytes);

  State state_ = State::Head;
  std::string line_;           // of the head or of chunk framing, while it is not there whole
  std::size_t remaining_ = 0;  // bytes of this body or chunk still to come
};

}  // namespace baton::bench
