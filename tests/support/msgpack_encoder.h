// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace baton::test {

// Role. Writes msgpack, each number in any width that holds it.
// Lifetime. Of one message.
class MsgpackEncoder {
 public:
  // `least`: bytes behind the tag at least, where a narrower form would do: 0, 1, 2, 4 or 8.
  MsgpackEncoder& unsigned_integer(std::uint64_t value, unsigned least = 0) {
    if (least == 0 && value < 0x80) return byte(value);
    if (least <= 1 && value <= 0xff) return byte(0xcc).big_endian(value, 1);
    if (least <= 2 && value <= 0xffff) return byte(0xcd).big_endian(value, 2);
    if (least <= 4 && value <= 0xffffffff) return byte(0xce).big_endian(value, 4);
    return byte(0xcf).big_endian(value, 8);
  }
  MsgpackEncoder& signed_integer(std::int64_t value, unsigned least = 0) {
    const auto bits = static_cast<std::uint64_t>(value);
    if (least == 0 && value >= -32 && value < 128) return byte(bits & 0xff);
    if (least <= 1 && value >= INT8_MIN && value <= INT8_MAX) return byte(0xd0).big_endian(bits, 1);
    if (least <= 2 && value >= INT16_MIN && value <= INT16_MAX)
      return byte(0xd1).big_endian(bits, 2);
    if (least <= 4 && value >= INT32_MIN && value <= INT32_MAX)
      return byte(0xd2).big_endian(bits, 4);
    return byte(0xd3).big_endian(bits, 8);
  }
  MsgpackEncoder& number(double value) {
    return byte(0xcb).big_endian(std::bit_cast<std::uint64_t>(value), 8);
  }
  MsgpackEncoder& number(float value) {
    return byte(0xca).big_endian(std::bit_cast<std::uint32_t>(value), 4);
  }
  MsgpackEncoder& nil() { return byte(0xc0); }
  MsgpackEncoder& boolean(bool value) { return byte(value ? 0xc3 : 0xc2); }
  MsgpackEncoder& text(std::string_view value, unsigned least = 0) {
    if (least == 0 && value.size() < 32) {
      byte(0xa0 + value.size());
    } else {
      head(value.size(), least, 0xd9, 0xda, 0xdb);
    }
    bytes_ += value;
    return *this;
  }
  MsgpackEncoder& bytes(std::string_view value, unsigned least = 0) {
    head(value.size(), least, 0xc4, 0xc5, 0xc6);
    bytes_ += value;
    return *this;
  }
  MsgpackEncoder& array(std::size_t elements, unsigned least = 0) {
    if (least == 0 && elements < 16) return byte(0x90 + elements);
    if (least <= 2 && elements <= 0xffff) return byte(0xdc).big_endian(elements, 2);
    return byte(0xdd).big_endian(elements, 4);
  }
  MsgpackEncoder& map(std::size_t pairs, unsigned least = 0) {
    if (least == 0 && pairs < 16) return byte(0x80 + pairs);
    if (least <= 2 && pairs <= 0xffff) return byte(0xde).big_endian(pairs, 2);
    return byte(0xdf).big_endian(pairs, 4);
  }
  MsgpackEncoder& raw(std::string_view encoded) {
    bytes_ += encoded;
    return *this;
  }

  const std::string& encoded() const { return bytes_; }
  std::span<const std::byte> span() const { return std::as_bytes(std::span(bytes_)); }

 private:
  MsgpackEncoder& byte(std::uint64_t value) {
    bytes_ += static_cast<char>(value);
    return *this;
  }
  MsgpackEncoder& big_endian(std::uint64_t value, unsigned width) {
    while (width-- > 0) byte(value >> (8 * width) & 0xff);
    return *this;
  }
  MsgpackEncoder& head(std::size_t size, unsigned least, unsigned tag8, unsigned tag16,
                       unsigned tag32) {
    if (least <= 1 && size <= 0xff) return byte(tag8).big_endian(size, 1);
    if (least <= 2 && size <= 0xffff) return byte(tag16).big_endian(size, 2);
    return byte(tag32).big_endian(size, 4);
  }

  std::string bytes_;
};

}  // namespace baton::test
