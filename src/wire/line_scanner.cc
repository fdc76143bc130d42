// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/line_scanner.h"

#include <array>

namespace baton::wire {
namespace {

constexpr auto kIsControl = [] {
  std::array<bool, 256> table{};
  for (std::size_t c = 0; c < 0x20; ++c) table[c] = c != '\t';
  table[0x7f] = true;
  return table;
}();

bool is_control(char c) { return kIsControl[static_cast<unsigned char>(c)]; }

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
        while (i < bytes.size() && !is_control(bytes[i])) ++i;
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
