// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/msgpack_reader.h"

#include <array>
#include <bit>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace baton::wire {
namespace {

// How an unsigned integer below 2^32 lies in the eight bytes from its tag on. Length 0: another kind
// of value.
struct Layout {
  std::uint8_t length = 0;
  std::uint8_t shift = 0;
  std::uint32_t mask = 0;
};
constexpr auto kLayouts = [] {
  std::array<Layout, 256> layouts{};
  for (std::size_t tag = 0; tag < 0x80; ++tag)
    layouts[tag] = {.length = 1, .shift = 56, .mask = 0x7f};
  layouts[msgpack::kUnsigned8] = {.length = 2, .shift = 48, .mask = 0xff};
  layouts[msgpack::kUnsigned8 + 1] = {.length = 3, .shift = 40, .mask = 0xffff};
  layouts[msgpack::kUnsigned32] = {.length = 5, .shift = 24, .mask = 0xffffffff};
  return layouts;
}();

// Number of bytes whose lengths are computed at once, as if a value began at each of them.
constexpr std::size_t kTagWindow = 64;

#if defined(__SSE2__)
// 0: not of a small unsigned number.
void tell_lengths(const std::byte* from, std::array<std::uint8_t, kTagWindow>& lengths) {
  for (std::size_t at = 0; at < kTagWindow; at += sizeof(__m128i)) {
    const __m128i tags = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at));
    const auto where = [](__m128i which, std::uint8_t length) {
      return _mm_and_si128(which, _mm_set1_epi8(static_cast<char>(length)));
    };
    const auto tagged = [&](std::uint8_t tag) {
      return where(_mm_cmpeq_epi8(tags, _mm_set1_epi8(static_cast<char>(tag))),
                   kLayouts[tag].length);
    };
    const __m128i fixed = where(_mm_cmpgt_epi8(tags, _mm_set1_epi8(-1)), kLayouts[0].length);
    const __m128i small =
        _mm_or_si128(tagged(msgpack::kUnsigned8), tagged(msgpack::kUnsigned8 + 1));
    const __m128i all = _mm_or_si128(_mm_or_si128(fixed, small), tagged(msgpack::kUnsigned32));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(lengths.data() + at), all);
  }
}
#else
void tell_lengths(const std::byte* from, std::array<std::uint8_t, kTagWindow>& lengths) {
  for (std::size_t at = 0; at < kTagWindow; ++at)
    lengths[at] = kLayouts[static_cast<std::uint8_t>(from[at])].length;
}
#endif

// By length.
constexpr std::array<std::uint32_t, 6> kMasks{0, 0x7f, 0xff, 0xffff, 0, 0xffffffff};

}  // namespace

bool MsgpackReader::fail() {
  broken_ = true;
  at_ = end_;
  return false;
}

// The number behind the tag, of 1, 2, 4 or 8 bytes; moves past it.
bool MsgpackReader::take_big_endian(std::size_t width, std::uint64_t& value) {
  if (left() < 1 + width) return fail();
  if (left() > sizeof(std::uint64_t)) {
    value = msgpack::load_big_endian(at_ + 1) >> static_cast<unsigned>(64 - 8 * width);
  } else {
    value = 0;
    for (std::size_t i = 1; i <= width; ++i)
      value = value << 8U | static_cast<std::uint8_t>(at_[i]);
  }
  at_ += 1 + width;
  return true;
}

std::optional<std::uint64_t> MsgpackReader::read_other_integer() {
  if (kind() != Kind::Integer) return std::nullopt;
  const std::uint8_t first = tag();
  if (first < 0x80) {
    ++at_;
    return first;
  }
  if (first >= msgpack::kNegative) {
    ++at_;
    return static_cast<std::uint64_t>(static_cast<std::int8_t>(first));
  }
  const bool is_signed = first >= msgpack::kSigned8;
  const std::size_t width =
      msgpack::width_of(first, is_signed ? msgpack::kSigned8 : msgpack::kUnsigned8);
  std::uint64_t value = 0;
  if (!take_big_endian(width, value)) return std::nullopt;
  if (!is_signed) return value;
  const auto unused = static_cast<unsigned>(64 - 8 * width);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
}

std::optional<std::uint64_t> MsgpackReader::read_unsigned() {
  if (kind() != Kind::Integer) return std::nullopt;
  const bool may_be_negative = tag() >= msgpack::kSigned8;
  const std::byte* const before = at_;
  const auto value = read_integer();
  if (value && may_be_negative && static_cast<std::int64_t>(*value) < 0) {
    at_ = before;
    return std::nullopt;
  }
  return value;
}

std::optional<double> MsgpackReader::read_number() {
  if (kind() == Kind::Integer) {
    const bool is_signed = tag() >= msgpack::kSigned8;
    const auto value = read_integer();
    if (!value) return std::nullopt;
    return is_signed ? static_cast<double>(static_cast<std::int64_t>(*value))
                     : static_cast<double>(*value);
  }
  if (kind() != Kind::Float) return std::nullopt;
  const bool narrow = tag() == msgpack::kFloat32;
  std::uint64_t bits = 0;
  if (!take_big_endian(narrow ? 4 : 8, bits)) return std::nullopt;
  return narrow ? std::bit_cast<float>(static_cast<std::uint32_t>(bits))
                : std::bit_cast<double>(bits);
}

std::optional<std::span<const std::byte>> MsgpackReader::take_block(std::size_t header,
                                                                    std::size_t size) {
  if (left() < header || left() - header < size) {
    fail();
    return std::nullopt;
  }
  const std::span<const std::byte> block{at_ + header, size};
  at_ += header + size;
  return block;
}

std::optional<std::string_view> MsgpackReader::read_other_text() {
  if (kind() != Kind::Text) return std::nullopt;
  std::uint64_t size = tag() & 0x1fU;
  std::size_t header = 1;
  if (tag() >= msgpack::kText8) {
    const std::byte* const before = at_;
    const std::size_t width = msgpack::width_of(tag(), msgpack::kText8);
    if (!take_big_endian(width, size)) return std::nullopt;
    at_ = before;
    header += width;
  }
  const auto block = take_block(header, size);
  if (!block) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(block->data()), block->size());
}

std::optional<std::span<const std::byte>> MsgpackReader::read_bytes() {
  if (kind() != Kind::Bytes) return std::nullopt;
  std::uint64_t size = 0;
  if (!take_big_endian(msgpack::width_of(tag(), msgpack::kBytes8), size)) return std::nullopt;
  return take_block(0, size);
}

// Reads a number of elements, each of which takes a byte at least. Width 0: it is in the tag.
std::optional<std::uint32_t> MsgpackReader::take_count(std::size_t width, std::size_t values_each) {
  std::uint64_t count = tag() & 0x0fU;
  if (width == 0) {
    ++at_;
  } else if (!take_big_endian(width, count)) {
    return std::nullopt;
  }
  if (count * values_each > left()) {
    fail();
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(count);
}

// Past the next value, or past the head of one that has others in it: `nested` says how many.
bool MsgpackReader::skip_flat(std::uint64_t& nested) {
  switch (kind()) {
    case Kind::None:
      return fail();
    case Kind::Nil:
    case Kind::Bool:
      ++at_;
      return true;
    case Kind::Integer:
      return read_integer().has_value();
    case Kind::Float:
      return read_number().has_value();
    case Kind::Text:
      return read_text().has_value();
    case Kind::Bytes:
      return read_bytes().has_value();
    case Kind::Array: {
      const auto count = read_array();
      nested = count.value_or(0);
      return count.has_value();
    }
    case Kind::Map: {
      const auto count = read_map();
      nested = std::uint64_t{2} * count.value_or(0);
      return count.has_value();
    }
    case Kind::Extension:
      break;
  }
  // A byte holds the extension's type.
  if (tag() >= msgpack::kFixedExtension1)
    return take_block(2, msgpack::width_of(tag(), msgpack::kFixedExtension1)).has_value();
  std::uint64_t size = 0;
  if (!take_big_endian(msgpack::width_of(tag(), msgpack::kExtension8), size)) return false;
  return take_block(1, size).has_value();
}

// Containers hold the number of their values, so counting those to come is enough: no stack.
bool MsgpackReader::skip() {
  for (std::uint64_t to_come = 1; to_come > 0; --to_come) {
    if (to_come > left()) return fail();
    std::uint64_t nested = 0;
    if (!skip_flat(nested)) return false;
    to_come += nested;
  }
  return true;
}

std::uint32_t MsgpackReader::read_u32s(std::uint32_t* out, std::uint32_t count) {
  std::uint32_t done = 0;
  // No branch on the width, which is unpredictable; each number depends on the previous one's
  // length alone.
  std::array<std::uint8_t, kTagWindow> lengths;
  while (count - done >= kTagWindow / 2 && left() >= kTagWindow + sizeof(std::uint64_t)) {
    tell_lengths(at_, lengths);
    std::size_t at = 0;
    while (at < kTagWindow && done < count && lengths[at] != 0) {
      const std::size_t length = lengths[at];
      out[done++] =
          static_cast<std::uint32_t>(msgpack::load_big_endian(at_ + at) >> (64 - 8 * length)) &
          kMasks[length];
      at += length;
    }
    at_ += at;
    if (at < kTagWindow) break;
  }
  while (done < count && left() >= sizeof(std::uint64_t)) {
    const Layout layout = kLayouts[tag()];
    if (layout.length == 0) break;
    out[done++] =
        static_cast<std::uint32_t>(msgpack::load_big_endian(at_) >> layout.shift) & layout.mask;
    at_ += layout.length;
  }
  while (done < count) {
    const std::byte* const before = at_;
    const auto value = read_unsigned();
    if (!value) break;
    if (*value > 0xffffffff) {
      at_ = before;
      break;
    }
    out[done++] = static_cast<std::uint32_t>(*value);
  }
  return done;
}

}  // namespace baton::wire
