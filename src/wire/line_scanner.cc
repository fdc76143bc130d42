// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/line_scanner.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace baton::wire {
namespace {

// HTAB is none: it may stand in values.
bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

static_assert(std::endian::native == std::endian::little);  // find_control counts from the low end

// The position of the first control byte at or after `at`; the size of `bytes` where there is none.
// Eight bytes at a time: a byte's high bit gets set where it is below 0x20 or is 0x7f. Bytes above
// a hit may be marked wrongly, the lowest mark is always right.
std::size_t find_control(std::string_view bytes, std::size_t at) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  while (bytes.size() - at >= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    const std::uint64_t below_space = (word - kOnes * 0x20) & ~word;
    const std::uint64_t flipped = word ^ (kOnes * 0x7f);
    const std::uint64_t is_delete = (flipped - kOnes) & ~flipped;
    const std::uint64_t marks = (below_space | is_delete) & (kOnes * 0x80);
    if (marks == 0) {
      at += sizeof(std::uint64_t);
      continue;
    }
    at += static_cast<std::size_t>(std::countr_zero(marks)) / 8;
    if (is_control(bytes[at])) return at;
    ++at;  // HTAB
  }
  while (at < bytes.size() && !is_control(bytes[at])) ++at;
  return at;
}

}  // namespace

LineScanner::Progress LineScanner::scan(std::string_view bytes) {
  const Progress progress = scan_within_limit(bytes.substr(0, left_));
  left_ -= progress.consumed;
  if (progress.status == Status::NeedMore && left_ == 0) {
    return {progress.consumed, Status::TooLong};
  }
  return progress;
}

LineScanner::Progress LineScanner::scan_within_limit(std::string_view bytes) {
  std::size_t i = 0;
  while (i < bytes.size()) {
    switch (state_) {
      case State::LineStart:
        if (bytes[i] == '\r') {
          state_ = State::AfterBlankCr;
          ++i;
          break;
        }
        if (bytes[i] == ' ' || bytes[i] == '\t') {
          return refuse(i, "a line starts with white space (folded header lines are not accepted)");
        }
        started_ = true;
        state_ = State::InLine;
        break;
      case State::InLine:
        i = find_control(bytes, i);
        if (i == bytes.size()) break;
        if (bytes[i] == '\n') return refuse(i, "a line ends in LF without CR");
        if (bytes[i] != '\r') return refuse(i, "a control byte in a header line");
        state_ = State::AfterCr;
        ++i;
        break;
      case State::AfterCr:
        if (bytes[i] != '\n') return refuse(i, "CR without LF");
        state_ = State::LineStart;
        ++i;
        break;
      case State::AfterBlankCr:
        if (bytes[i] != '\n') return refuse(i, "CR without LF");
        state_ = State::LineStart;
        ++i;
        if (started_ || section_ == Section::Trailers) return {i, Status::End};
        break;
    }
  }
  return {i, Status::NeedMore};
}

LineScanner::Progress LineScanner::refuse(std::size_t at, std::string_view problem) {
  problem_ = problem;
  return {at, Status::Malformed};
}

}  // namespace baton::wire
