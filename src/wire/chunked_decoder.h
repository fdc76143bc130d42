// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "wire/line_scanner.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace baton::wire {

// Role. Takes a body out of its chunk framing. Strict: CRLF only, sizes of plain hex digits,
//   bounded extensions and trailers (both dropped).
// Confinement. One thread.
// Lifetime. Owned by a parser, good for one body.
// Invariants. What it reports depends on the bytes alone, never on how they were cut into calls.
class ChunkedDecoder {
 public:
  static constexpr std::size_t kMaxExtensionBytes = 256;  // of one chunk
  static constexpr std::size_t kMaxTrailerBytes = 8192;

  enum class Status { NeedMore, Data, End, Malformed, TooLarge };
  struct Step {
    std::size_t consumed;
    Status status;
    std::string_view
        data;  // inside the bytes given, at the end of what was consumed; only with Data
  };

  explicit ChunkedDecoder(std::uint64_t max_body = std::numeric_limits<std::uint64_t>::max())
      : body_left_(max_body) {}

  // Goes on until there is a run of data to hand out, or the bytes or the body end.
  Step next(std::string_view bytes);

  // Describes the fault; only after Malformed.
  std::string_view problem() const { return problem_; }

 private:
  enum class State { FirstDigit, Digits, Extension, SizeLf, Data, DataCr, DataLf, Trailers, End };

  // The framing up to the next chunk's data: its size in bytes, and the chunk's.
  struct Framing {
    std::size_t size = 0;  // 0: it is not there whole, or not of the usual kind
    std::uint64_t chunk = 0;
  };
  Framing read_framing(std::string_view bytes) const;
  // One byte of framing. Returns NeedMore to go on.
  Status take(char c);
  Status take_after_size(char c);
  Status begin_chunk();
  Status refuse(std::string_view problem);

  State state_ = State::FirstDigit;
  std::uint64_t chunk_left_ = 0;
  std::uint64_t body_left_;
  std::size_t extension_bytes_ = 0;
  LineScanner trailers_{LineScanner::Section::Trailers, kMaxTrailerBytes};
  std::string_view problem_;
};

}  // namespace baton::wire
