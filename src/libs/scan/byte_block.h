// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace baton::scan {

// Sixteen bytes of text that are compared at once: `block == byte` is a block with 0xFF where they
// are the same, else 0.
using ByteBlock = std::uint8_t __attribute__((vector_size(16)));

inline ByteBlock load_block(const char* from) {
  ByteBlock block;
  std::memcpy(&block, from, sizeof block);
  return block;
}

// Index of the first byte that is not 0; the size of a block if there is none.
template <class Block>
std::size_t first_hit(Block hits) {
#if defined(__SSE2__)
  using Chars = char __attribute__((vector_size(16)));
  const int mask = __builtin_ia32_pmovmskb128(std::bit_cast<Chars>(hits));
  return static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(mask) | 0x1'0000U));
#else
  static_assert(std::endian::native == std::endian::little);
  const auto halves = std::bit_cast<std::array<std::uint64_t, 2> >(hits);
  const auto first = [](std::uint64_t half) {
    return static_cast<std::size_t>(std::countr_zero(half)) / 8;  // 8 where there is none
  };
  return halves[0] != 0 ? first(halves[0]) : 8 + first(halves[1]);
#endif
}

// A bit for each byte, the lowest for the first: whether it is 0xFF. Requires: bytes of 0xFF or 0.
template <class Block>
std::uint32_t hit_bits(Block hits) {
#if defined(__SSE2__)
  using Chars = char __attribute__((vector_size(16)));
  return static_cast<std::uint32_t>(__builtin_ia32_pmovmskb128(std::bit_cast<Chars>(hits)));
#else
  static_assert(std::endian::native == std::endian::little);
  const auto halves = std::bit_cast<std::array<std::uint64_t, 2> >(hits);
  const auto bits =
      [](std::uint64_t half) {  // the product moves each byte's bit to its place on top
        return static_cast<std::uint32_t>(
            (half & 0x0101'0101'0101'0101U) * 0x0102'0408'1020'4080U >> 56U);
      };
  return bits(halves[0]) | bits(halves[1]) << 8U;
#endif
}

}  // namespace baton::scan
