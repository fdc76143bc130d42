// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/msgpack_writer.h"

#include <bit>
#include <limits>

namespace baton::sim {
namespace {

template <typename Narrow, typename Wide>
bool fits(Wide value) {
  return value >= static_cast<Wide>(std::numeric_limits<Narrow>::min()) &&
         value <= static_cast<Wide>(std::numeric_limits<Narrow>::max());
}

}  // namespace

void MsgpackWriter::number(std::uint64_t value) {
  if (value < 0x80) {
    byte(static_cast<unsigned>(value));
  } else if (fits<std::uint8_t>(value)) {
    byte(0xCC);
    big_endian(value, 1);
  } else if (fits<std::uint16_t>(value)) {
    byte(0xCD);
    big_endian(value, 2);
  } else if (fits<std::uint32_t>(value)) {
    byte(0xCE);
    big_endian(value, 4);
  } else {
    byte(0xCF);
    big_endian(value, 8);
  }
}

void MsgpackWriter::signed_number(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  if (value >= 0) {
    number(bits);
  } else if (value >= -32) {
    byte(static_cast<unsigned>(bits & 0xFFU));
  } else if (fits<std::int8_t>(value)) {
    byte(0xD0);
    big_endian(bits, 1);
  } else if (fits<std::int16_t>(value)) {
    byte(0xD1);
    big_endian(bits, 2);
  } else if (fits<std::int32_t>(value)) {
    byte(0xD2);
    big_endian(bits, 4);
  } else {
    byte(0xD3);
    big_endian(bits, 8);
  }
}

void MsgpackWriter::real(double value) {
  byte(0xCB);
  big_endian(std::bit_cast<std::uint64_t>(value), 8);
}

void MsgpackWriter::text(std::string_view value) {
  if (value.size() < 32) {
    byte(0xA0U | static_cast<unsigned>(value.size()));
  } else if (fits<std::uint8_t>(value.size())) {
    byte(0xD9);
    big_endian(value.size(), 1);
  } else if (fits<std::uint16_t>(value.size())) {
    byte(0xDA);
    big_endian(value.size(), 2);
  } else {
    byte(0xDB);
    big_endian(value.size(), 4);
  }
  out_ += value;
}

void MsgpackWriter::bytes(std::span<const std::uint8_t> value) {
  if (fits<std::uint8_t>(value.size())) {
    byte(0xC4);
    big_endian(value.size(), 1);
  } else if (fits<std::uint16_t>(value.size())) {
    byte(0xC5);
    big_endian(value.size(), 2);
  } else {
    byte(0xC6);
    big_endian(value.size(), 4);
  }
  out_.append(value.begin(), value.end());
}

void MsgpackWriter::big_endian(std::uint64_t value, unsigned bytes) {
  for (unsigned shift = 8 * bytes; shift > 0; shift -= 8) {
    byte(static_cast<unsigned>((value >> (shift - 8)) & 0xFFU));
  }
}

// Few elements are told in the type's own byte; `wide` is the type with a length of two bytes, and
// the next one that with four.
void MsgpackWriter::head(std::size_t count, unsigned fixed, std::size_t most, unsigned wide) {
  if (count <= most) {
    byte(fixed | static_cast<unsigned>(count));
  } else if (fits<std::uint16_t>(count)) {
    byte(wide);
    big_endian(count, 2);
  } else {
    byte(wide + 1);
    big_endian(count, 4);
  }
}

}  // namespace baton::sim
