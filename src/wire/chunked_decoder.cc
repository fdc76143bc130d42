// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/chunked_decoder.h"

#include <algorithm>

namespace baton::wire {
namespace {

// A size above this is no honest one; below it, adding a digit cannot overflow.
constexpr std::uint64_t kMaxChunk = std::uint64_t{1} << 48;

constexpr std::string_view kCrLf = "\r\n";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

ChunkedDecoder::Framing ChunkedDecoder::read_framing(std::string_view bytes) const {
  constexpr std::size_t kMostDigits = 8;
  const std::size_t begin = state_ == State::DataCr ? kCrLf.size() : 0;
  if (begin > 0 && !bytes.starts_with(kCrLf)) return {};
  std::size_t at = begin;
  std::uint64_t chunk = 0;
  for (; at < bytes.size() && at - begin <= kMostDigits && hex_value(bytes[at]) >= 0; ++at)
    chunk = chunk * 16 + static_cast<std::uint64_t>(hex_value(bytes[at]));
  if (at == begin || at - begin > kMostDigits || !bytes.substr(at).starts_with(kCrLf)) return {};
  return {at + kCrLf.size(), chunk};
}

ChunkedDecoder::Step ChunkedDecoder::next(std::string_view bytes) {
  std::size_t i = 0;
  while (i < bytes.size() && state_ != State::End) {
    if (state_ == State::Data) {
      const auto size =
          static_cast<std::size_t>(std::min<std::uint64_t>(chunk_left_, bytes.size() - i));
      chunk_left_ -= size;
      if (chunk_left_ == 0) state_ = State::DataCr;
      return {i + size, Status::Data, bytes.substr(i, size)};
    }
    if (state_ == State::Trailers) {
      const auto [consumed, status] = trailers_.scan(bytes.substr(i));
      i += consumed;
      if (status == LineScanner::Status::Malformed) return {i, refuse(trailers_.problem()), {}};
      if (status == LineScanner::Status::TooLong) return {i, refuse("trailers too long"), {}};
      if (status == LineScanner::Status::End) state_ = State::End;
      continue;
    }
    if (state_ == State::FirstDigit || state_ == State::DataCr) {
      // Framing that came whole, as nearly all does.
      const Framing framing = read_framing(bytes.substr(i));
      if (framing.size > 0) {
        i += framing.size;
        chunk_left_ = framing.chunk;
        if (const Status status = begin_chunk(); status != Status::NeedMore) return {i, status, {}};
        continue;
      }
    }
    const Status status = take(bytes[i++]);
    if (status != Status::NeedMore) return {i, status, {}};
  }
  return {i, state_ == State::End ? Status::End : Status::NeedMore, {}};
}

ChunkedDecoder::Status ChunkedDecoder::take(char c) {
  switch (state_) {
    case State::FirstDigit:
      if (hex_value(c) < 0) return refuse("a chunk size must start with a hex digit");
      chunk_left_ = static_cast<std::uint64_t>(hex_value(c));
      state_ = State::Digits;
      return Status::NeedMore;
    case State::Digits:
      if (hex_value(c) < 0) return take_after_size(c);
      chunk_left_ = chunk_left_ * 16 + static_cast<std::uint64_t>(hex_value(c));
      if (chunk_left_ > kMaxChunk) return refuse("chunk size too large");
      return Status::NeedMore;
    case State::Extension:
      return take_after_size(c);
    case State::SizeLf:
      if (c != '\n') return refuse("a chunk size line has CR without LF");
      return begin_chunk();
    case State::DataCr:
      if (c != '\r') return refuse("chunk data is not followed by CRLF");
      state_ = State::DataLf;
      return Status::NeedMore;
    case State::DataLf:
      if (c != '\n') return refuse("chunk data is not followed by CRLF");
      state_ = State::FirstDigit;
      return Status::NeedMore;
    case State::Data:
    case State::Trailers:
    case State::End:
      break;  // handled in next()
  }
  return refuse("chunk framing out of step");
}

ChunkedDecoder::Status ChunkedDecoder::take_after_size(char c) {
  if (c == '\r') {
    state_ = State::SizeLf;
    return Status::NeedMore;
  }
  if (c == '\n') return refuse("a chunk size line ends in LF without CR");
  if (state_ == State::Digits && c != ';') return refuse("invalid character in chunk size");
  const auto byte = static_cast<unsigned char>(c);
  if ((byte < 0x20 && c != '\t') || byte == 0x7f) {
    return refuse("a control byte in a chunk extension");
  }
  if (++extension_bytes_ > kMaxExtensionBytes) return refuse("chunk extension too long");
  state_ = State::Extension;
  return Status::NeedMore;
}

ChunkedDecoder::Status ChunkedDecoder::begin_chunk() {
  extension_bytes_ = 0;
  if (chunk_left_ == 0) {
    state_ = State::Trailers;
    return Status::NeedMore;
  }
  if (chunk_left_ > body_left_) return Status::TooLarge;
  body_left_ -= chunk_left_;
  state_ = State::Data;
  return Status::NeedMore;
}

ChunkedDecoder::Status ChunkedDecoder::refuse(std::string_view problem) {
  problem_ = problem;
  return Status::Malformed;
}

}  // namespace baton::wire
