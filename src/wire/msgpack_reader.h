// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "wire/msgpack_tags.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace baton::wire {

// Role. A cursor over one or more msgpack values.
// Confinement. One thread.
// Lifetime. The bytes must outlive it and every view it gave.
// Invariants. Allocates nothing and never looks past the bytes. A length that the bytes left cannot
//   hold breaks the reader, so a count it gave is never larger than what is left. Once broken it
//   stays so, and has no more values.
class MsgpackReader {
 public:
  using Kind = msgpack::Kind;

  explicit MsgpackReader(std::span<const std::byte> bytes)
      : begin_(bytes.data()), at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  // Kind of the next value; None at the end.
  Kind kind() const { return at_ == end_ ? Kind::None : msgpack::kKinds[tag()]; }
  // The encoding is broken: cut off, or no msgpack.
  bool broken() const { return broken_; }
  bool at_end() const { return at_ == end_; }
  std::size_t position() const { return static_cast<std::size_t>(at_ - begin_); }
  // Back to where a value began. Requires: a position that this reader had. A broken one stays
  // at its end.
  void rewind(std::size_t position) {
    if (!broken_) at_ = begin_ + position;
  }
  std::span<const std::byte> between(std::size_t from, std::size_t to) const {
    return {begin_ + from, to - from};
  }

  // Each takes the next value; where that is of another kind it stays, and nothing is given.
  bool read_nil() {
    if (kind() != Kind::Nil) return false;
    ++at_;
    return true;
  }
  // Signed ones as two's complement.
  std::optional<std::uint64_t> read_integer() {
    if (left() <= sizeof(std::uint64_t) || tag() != msgpack::kUnsigned64)
      return read_other_integer();
    const std::uint64_t value = msgpack::load_big_endian(at_ + 1);
    at_ += 1 + sizeof(value);
    return value;
  }
  // Nothing where it is negative as well.
  std::optional<std::uint64_t> read_unsigned();
  // Integers too.
  std::optional<double> read_number();
  std::optional<std::string_view> read_text() {
    // The length of a short one is in its tag.
    if (at_ == end_ || tag() >> 5U != msgpack::kShortText >> 5U) return read_other_text();
    const std::size_t size = tag() & 0x1fU;
    if (left() <= size) return read_other_text();
    const std::string_view text(reinterpret_cast<const char*>(at_ + 1), size);
    at_ += 1 + size;
    return text;
  }
  std::optional<std::span<const std::byte>> read_bytes();
  // The number of elements, or of pairs: those are the next values.
  std::optional<std::uint32_t> read_array() {
    if (kind() != Kind::Array) return std::nullopt;
    return take_count(
        tag() < msgpack::kArray16 ? 0 : 2 * msgpack::width_of(tag(), msgpack::kArray16), 1);
  }
  std::optional<std::uint32_t> read_map() {
    if (kind() != Kind::Map) return std::nullopt;
    return take_count(tag() < msgpack::kMap16 ? 0 : 2 * msgpack::width_of(tag(), msgpack::kMap16),
                      2);
  }
  // Past the next value and all that is in it, however deep.
  bool skip();
  // Past these bytes, if they are the next ones: a value that was read before comes again.
  bool take(std::span<const std::byte> expected) {
    if (expected.empty()) return true;
    if (left() < expected.size()) return false;
    if (std::memcmp(at_, expected.data(), expected.size()) != 0) return false;
    at_ += expected.size();
    return true;
  }

  // Appends, while the next values are unsigned integers below 2^32, at most `count` of them; how
  // many there were. Requires: room for `count` behind `out`.
  std::uint32_t read_u32s(std::uint32_t* out, std::uint32_t count);

 private:
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  std::uint8_t tag() const { return static_cast<std::uint8_t>(*at_); }
  bool fail();
  std::optional<std::uint64_t> read_other_integer();
  std::optional<std::string_view> read_other_text();
  bool take_big_endian(std::size_t width, std::uint64_t& value);
  std::optional<std::span<const std::byte>> take_block(std::size_t header, std::size_t size);
  std::optional<std::uint32_t> take_count(std::size_t width, std::size_t values_each);
  bool skip_flat(std::uint64_t& nested);

  const std::byte* begin_;
  const std::byte* at_;
  const std::byte* end_;
  bool broken_ = false;
};

}  // namespace baton::wire
