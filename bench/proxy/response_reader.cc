// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "proxy/response_reader.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <system_error>

namespace baton::bench {
namespace {

constexpr std::size_t kMaxHeadBytes = 16384;

bool parse_size(std::string_view text, int base, std::size_t& size) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size, base);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

const char* ResponseReader::feed(std::string_view bytes, std::string& body) {
  while (!bytes.empty()) {
    switch (state_) {
      case State::Head:
      case State::ChunkSize:
      case State::ChunkEnd:
      case State::LastLine:
        if (const char* wrong = take_line(bytes)) return wrong;
        break;
      case State::Length:
      case State::ChunkData: {
        const std::size_t count = std::min(remaining_, bytes.size());
        body.append(bytes.substr(0, count));
        bytes.remove_prefix(count);
        remaining_ -= count;
        if (remaining_ == 0) {
          state_ = state_ == State::Length ? State::Complete : State::ChunkEnd;
        }
        break;
      }
      case State::Complete:
        return "bytes after the end of the answer";
    }
  }
  return nullptr;
}

// Takes up to and including the next line end (for the head: the empty line) and acts on it.
const char* ResponseReader::take_line(std::string_view& bytes) {
  const std::string_view end = state_ == State::Head ? "\r\n\r\n" : "\r\n";
  const std::size_t known = line_.size();
  line_ += bytes;
  // The end may have begun in what was there before.
  const std::size_t at = line_.find(end, known < end.size() ? 0 : known - end.size());
  if (at == std::string::npos) {
    bytes = {};
    return line_.size() > kMaxHeadBytes ? "head or chunk line too long" : nullptr;
  }
  bytes.remove_prefix(at + end.size() - known);
  line_.resize(at);
  const char* wrong = nullptr;
  switch (state_) {
    case State::Head:
      wrong = take_head();
      break;
    case State::ChunkSize:
      if (!parse_size(line_, 16, remaining_)) return "malformed chunk size";
      state_ = remaining_ == 0 ? State::LastLine : State::ChunkData;
      break;
    default:
      if (!line_.empty()) return "a chunk does not end where it should";
      state_ = state_ == State::LastLine ? State::Complete : State::ChunkSize;
      break;
  }
  line_.clear();
  return wrong;
}

const char* ResponseReader::take_head() {
  if (!line_.starts_with("HTTP/1.1 200 ")) return "status is not 200";
  std::ranges::transform(line_, line_.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (line_.find("\r\ntransfer-encoding: chunked") != std::string::npos) {
    state_ = State::ChunkSize;
    return nullptr;
  }
  constexpr std::string_view kLength = "\r\ncontent-length: ";
  const auto at = line_.find(kLength);
  if (at == std::string::npos) return "neither chunked nor a content-length";
  const auto start = at + kLength.size();
  if (!parse_size(std::string_view(line_).substr(start, line_.find("\r\n", start) - start), 10,
                  remaining_)) {
    return "malformed content-length";
  }
  state_ = remaining_ == 0 ? State::Complete : State::Length;
  return nullptr;
}

}  // namespace baton::bench
