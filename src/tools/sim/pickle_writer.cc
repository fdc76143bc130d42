// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/pickle_writer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace baton::sim {
namespace {

constexpr std::size_t kFrameHead = 9;  // opcode and length
constexpr std::size_t kSmallestFrame = 4;
constexpr std::size_t kFullFrame = std::size_t{64} << 10U;

enum Opcode : std::uint8_t {
  kMark = 0x28,
  kEmptyTuple = 0x29,
  kStop = 0x2E,
  kBytes = 0x42,
  kShortBytes = 0x43,
  kInt32 = 0x4A,
  kInt8 = 0x4B,
  kInt16 = 0x4D,
  kNone = 0x4E,
  kText = 0x58,
  kGet = 0x68,
  kLongGet = 0x6A,
  kTuple = 0x74,
  kTuple1 = 0x85,  // and those of two and three
  kLong = 0x8A,
  kShortText = 0x8C,
  kMemoize = 0x94,
  kFrame = 0x95,
};

// An opcode and a number behind it.
class Head {
 public:
  Head(Opcode opcode, std::uint64_t value, std::size_t bytes) : size_(1 + bytes) {
    bytes_[0] = opcode;
    for (std::size_t i = 0; i < bytes; ++i) {
      bytes_[1 + i] = static_cast<std::uint8_t>(value >> (8 * i));
    }
  }
  operator std::span<const std::uint8_t>() const { return std::span(bytes_).first(size_); }

 private:
  std::array<std::uint8_t, kFrameHead> bytes_{};
  std::size_t size_;
};

// One of the characters that CPython has one object each for: U+0000 to U+00FF.
bool is_shared(std::string_view text) {
  if (text.size() == 1) return true;
  const auto lead = text.empty() ? 0U : static_cast<unsigned char>(text.front());
  return text.empty() || (text.size() == 2 && (lead == 0xC2 || lead == 0xC3));
}

}  // namespace

void PickleWriter::none() {
  next_object();
  put(kNone);
}

void PickleWriter::integer(std::int64_t value) {
  next_object();
  const auto bits = static_cast<std::uint64_t>(value);
  if (value >= 0 && value <= 0xFF) return put(Head(kInt8, bits, 1));
  if (value >= 0 && value <= 0xFFFF) return put(Head(kInt16, bits, 2));
  if (value >= std::numeric_limits<std::int32_t>::min() &&
      value <= std::numeric_limits<std::int32_t>::max()) {
    return put(Head(kInt32, bits, 4));
  }
  // The fewest bytes that keep the sign.
  std::uint8_t size = 5;
  while (size < 8 && value >> (8 * size - 1) != (value < 0 ? -1 : 0)) ++size;
  put(kLong);
  put(size);
  for (unsigned i = 0; i < size; ++i) put(static_cast<std::uint8_t>(bits >> (8 * i)));
}

void PickleWriter::bytes(std::span<const std::uint8_t> value) {
  next_object();
  const bool small = value.size() <= 0xFF;
  put_long(Head(small ? kShortBytes : kBytes, value.size(), small ? 1 : 4), value);
  memoize();
}

void PickleWriter::text(std::string_view value) {
  next_object();
  if (is_shared(value)) {
    const auto known = characters_.find(value);
    if (known != characters_.end()) {
      const bool small = known->second <= 0xFF;
      return put(Head(small ? kGet : kLongGet, known->second, small ? 1 : 4));
    }
    characters_.emplace(value, memoized_);
  }
  const bool small = value.size() <= 0xFF;
  put_long(Head(small ? kShortText : kText, value.size(), small ? 1 : 4),
           {reinterpret_cast<const std::uint8_t*>(value.data()), value.size()});
  memoize();
}

void PickleWriter::open_tuple(std::size_t size) {
  next_object();
  if (size > 3) put(kMark);
}

void PickleWriter::close_tuple(std::size_t size) {
  if (size == 0) return put(kEmptyTuple);  // of which there is one, and which is not memoized
  put(size > 3 ? std::uint8_t{kTuple} : static_cast<std::uint8_t>(kTuple1 + size - 1));
  memoize();
}

std::vector<std::uint8_t> PickleWriter::finish() && {
  put(kStop);
  close_frame();
  return std::move(out_);
}

void PickleWriter::next_object() {
  if (frame_ && out_.size() - *frame_ - kFrameHead >= kFullFrame) close_frame();
}

void PickleWriter::close_frame() {
  if (!frame_) return;
  const auto begin = out_.begin() + static_cast<std::ptrdiff_t>(*frame_);
  const std::size_t size = out_.size() - *frame_ - kFrameHead;
  if (size >= kSmallestFrame) {
    const Head head(kFrame, size, 8);
    std::ranges::copy(std::span<const std::uint8_t>(head), begin);
  } else {
    out_.erase(begin, begin + kFrameHead);
  }
  frame_.reset();
}

void PickleWriter::put(std::span<const std::uint8_t> bytes) {
  if (framed_ && !frame_) {
    frame_ = out_.size();
    out_.resize(out_.size() + kFrameHead);
  }
  out_.insert(out_.end(), bytes.begin(), bytes.end());
}

void PickleWriter::put_long(std::span<const std::uint8_t> header,
                            std::span<const std::uint8_t> data) {
  if (data.size() >= kFullFrame) {
    close_frame();
    framed_ = false;
  }
  put(header);
  put(data);
  framed_ = true;
}

void PickleWriter::memoize() {
  put(kMemoize);
  ++memoized_;
}

}  // namespace baton::sim
