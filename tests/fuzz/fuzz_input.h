// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace baton::fuzz {

// The bytes under test, and a number taken from their end that decides how they are cut.
struct Input {
  Input(const std::uint8_t* data, std::size_t size)
      : bytes(reinterpret_cast<const char*>(data), size) {
    for (int i = 0; i < 2 && !bytes.empty(); ++i) {
      seed = seed * 256 + static_cast<unsigned char>(bytes.back());
      bytes.remove_suffix(1);
    }
  }

  std::string_view bytes;
  std::uint32_t seed = 0;
};

// Sizes of pieces: a sequence given by its seed alone, mostly small.
class Cuts {
 public:
  explicit Cuts(std::uint32_t seed) : state_(seed | 1U) {}

  std::size_t next(std::size_t available) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    const std::size_t size = (state_ & 0x100) != 0 ? 1 + (state_ & 3) : 1 + (state_ & 63);
    return std::min(size, available);
  }

 private:
  std::uint32_t state_;
};

// Ends the run, with the input kept, where something that must hold does not.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

}  // namespace baton::fuzz
