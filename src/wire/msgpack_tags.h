// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace baton::wire::msgpack {

// The first byte of a value: https://github.com/msgpack/msgpack/blob/master/spec.md
inline constexpr std::uint8_t kShortText = 0xa0;
inline constexpr std::uint8_t kNil = 0xc0;
inline constexpr std::uint8_t kUnused = 0xc1;
inline constexpr std::uint8_t kFalse = 0xc2;
inline constexpr std::uint8_t kTrue = 0xc3;
inline constexpr std::uint8_t kBytes8 = 0xc4;
inline constexpr std::uint8_t kBytes32 = 0xc6;
inline constexpr std::uint8_t kExtension8 = 0xc7;
inline constexpr std::uint8_t kExtension32 = 0xc9;
inline constexpr std::uint8_t kFloat32 = 0xca;
inline constexpr std::uint8_t kFloat64 = 0xcb;
inline constexpr std::uint8_t kUnsigned8 = 0xcc;
inline constexpr std::uint8_t kUnsigned32 = 0xce;
inline constexpr std::uint8_t kUnsigned64 = 0xcf;
inline constexpr std::uint8_t kSigned8 = 0xd0;
inline constexpr std::uint8_t kSigned64 = 0xd3;
inline constexpr std::uint8_t kFixedExtension1 = 0xd4;
inline constexpr std::uint8_t kFixedExtension16 = 0xd8;
inline constexpr std::uint8_t kText8 = 0xd9;
inline constexpr std::uint8_t kText32 = 0xdb;
inline constexpr std::uint8_t kArray16 = 0xdc;
inline constexpr std::uint8_t kArray32 = 0xdd;
inline constexpr std::uint8_t kMap16 = 0xde;
inline constexpr std::uint8_t kMap32 = 0xdf;
inline constexpr std::uint8_t kNegative = 0xe0;

enum class Kind : std::uint8_t {
  None,
  Nil,
  Bool,
  Integer,
  Float,
  Text,
  Bytes,
  Array,
  Map,
  Extension
};

constexpr Kind kind_of(std::size_t tag) {
  if (tag < 0x80 || tag >= kNegative) return Kind::Integer;
  if (tag < 0x90) return Kind::Map;
  if (tag < kShortText) return Kind::Array;
  if (tag < kNil) return Kind::Text;
  if (tag == kNil) return Kind::Nil;
  if (tag == kUnused) return Kind::None;
  if (tag <= kTrue) return Kind::Bool;
  if (tag <= kBytes32) return Kind::Bytes;
  if (tag <= kExtension32) return Kind::Extension;
  if (tag <= kFloat64) return Kind::Float;
  if (tag <= kSigned64) return Kind::Integer;
  if (tag <= kFixedExtension16) return Kind::Extension;
  if (tag <= kText32) return Kind::Text;
  if (tag <= kArray32) return Kind::Array;
  return Kind::Map;
}
static_assert(kFalse + 1 == kTrue && kMap32 + 1 == kNegative);

// Indexed by tag: a look-up instead of branches that the processor would have to predict.
inline constexpr std::array<Kind, 256> kKinds = [] {
  std::array<Kind, 256> kinds{};
  for (std::size_t tag = 0; tag < kinds.size(); ++tag) kinds[tag] = kind_of(tag);
  return kinds;
}();

// Bytes of the number that follows the first of such a row of tags: 1, 2, 4, 8.
inline std::size_t width_of(std::uint8_t tag, std::uint8_t first) {
  return std::size_t{1} << static_cast<unsigned>(tag - first);
}

inline std::uint64_t load_big_endian(const std::byte* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  if constexpr (std::endian::native == std::endian::little) word = std::byteswap(word);
  return word;
}

}  // namespace baton::wire::msgpack
