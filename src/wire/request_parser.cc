// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/chunked_decoder.h"
#include "wire/head_parser.h"
#include "wire/http_parser.h"
#include "wire/line_scanner.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace baton::wire {
namespace {

// Bounds of the memory reserved for a Content-Length: before the first byte of the body, and later
// as a multiple of the bytes received. The kernel provides memory only when it is written, so a
// false length costs nothing, and a long body is copied twice at most.
constexpr std::uint64_t kFirstReserve = 1024 * 1024;
constexpr std::uint64_t kReserveFactor = 16;

}  // namespace

struct RequestParser::Impl {
  enum class Phase { Head, SizedBody, ChunkedBody, Done, Failed };

  explicit Impl(HttpLimits given)
      : limits(given), scanner(LineScanner::Section::Head, given.header_bytes) {}

  Progress read_head(std::string_view bytes);
  Progress read_sized(std::string_view bytes);
  Progress read_chunked(std::string_view bytes);
  Progress begin_message(std::string_view text, std::size_t consumed);
  Progress refuse(std::size_t consumed, Error reason);
  Progress refuse_size(std::size_t consumed);

  HttpLimits limits;
  Phase phase = Phase::Head;
  LineScanner scanner;
  ChunkedDecoder decoder;
  std::uint64_t body_left = 0;
  std::string carry;  // a head that did not come in one piece
  RequestHead head;
  std::string body;
  std::optional<Error> error;
};

RequestParser::RequestParser(HttpLimits limits) : impl_(std::make_unique<Impl>(limits)) {}
RequestParser::~RequestParser() = default;
RequestParser::RequestParser(RequestParser&&) noexcept = default;
RequestParser& RequestParser::operator=(RequestParser&&) noexcept = default;

RequestHead& RequestParser::head() { return impl_->head; }
const RequestHead& RequestParser::head() const { return impl_->head; }
std::string& RequestParser::body() { return impl_->body; }
const Error& RequestParser::error() const { return impl_->error.value(); }
bool RequestParser::idle() const {
  return impl_->phase == Impl::Phase::Head && !impl_->scanner.started();
}
// Anew, because a string that is assigned to keeps its memory.
void RequestParser::next() { impl_ = std::make_unique<Impl>(impl_->limits); }

RequestParser::Progress RequestParser::feed(std::string_view bytes) {
  switch (impl_->phase) {
    case Impl::Phase::Head:
      return impl_->read_head(bytes);
    case Impl::Phase::SizedBody:
      return impl_->read_sized(bytes);
    case Impl::Phase::ChunkedBody:
      return impl_->read_chunked(bytes);
    case Impl::Phase::Done:
      return {0, ParseStatus::Done};
    case Impl::Phase::Failed:
      break;
  }
  return {0, ParseStatus::Failed};
}

RequestParser::Progress RequestParser::Impl::read_head(std::string_view bytes) {
  const auto [consumed, status] = scanner.scan(bytes);
  switch (status) {
    case LineScanner::Status::NeedMore:
      carry.append(bytes);
      return {consumed, ParseStatus::NeedMore};
    case LineScanner::Status::Malformed:
      return refuse(consumed, Error(Errc::InvalidRequest,
                                    fmt::format("malformed HTTP head: {}", scanner.problem())));
    case LineScanner::Status::TooLong:
      return refuse(
          consumed,
          Error(Errc::HeadersTooLarge,
                fmt::format("request line and headers are larger than the limit of {} bytes",
                            limits.header_bytes))
              .with_limit(Limit::HeaderBytes));
    case LineScanner::Status::End:
      break;
  }
  std::string_view text = bytes.substr(0, consumed);
  std::string joined;
  if (!carry.empty()) {
    joined = std::exchange(carry, {});
    joined.append(text);
    text = joined;
  }
  text.remove_prefix(text.find_first_not_of("\r\n"));  // blank lines in front are tolerated
  return begin_message(text, consumed);
}

RequestParser::Progress RequestParser::Impl::begin_message(std::string_view text,
                                                           std::size_t consumed) {
  auto parsed = parse_request_head(text);
  if (!parsed) return refuse(consumed, std::move(parsed.error()));
  head = std::move(*parsed);
  if (head.chunked) {
    decoder = ChunkedDecoder(limits.body_bytes);
    phase = Phase::ChunkedBody;
  } else {
    body_left = head.content_length.value_or(0);
    if (body_left > limits.body_bytes) return refuse_size(consumed);
    body.reserve(static_cast<std::size_t>(std::min(body_left, kFirstReserve)));
    phase = Phase::SizedBody;
  }
  return {consumed, ParseStatus::HeadDone};
}

RequestParser::Progress RequestParser::Impl::read_sized(std::string_view bytes) {
  const std::string_view taken =
      bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(body_left, bytes.size())));
  if (taken.size() > body.capacity() - body.size()) {
    const std::uint64_t more = std::max(kFirstReserve, body.size() * kReserveFactor);
    body.reserve(body.size() + static_cast<std::size_t>(std::min(body_left, more)));
  }
  body.append(taken);
  body_left -= taken.size();
  if (body_left > 0) return {taken.size(), ParseStatus::NeedMore};
  phase = Phase::Done;
  return {taken.size(), ParseStatus::Done};
}

RequestParser::Progress RequestParser::Impl::read_chunked(std::string_view bytes) {
  std::size_t consumed = 0;
  while (true) {
    const auto step = decoder.next(bytes.substr(consumed));
    consumed += step.consumed;
    switch (step.status) {
      case ChunkedDecoder::Status::Data:
        body.append(step.data);
        break;
      case ChunkedDecoder::Status::NeedMore:
        return {consumed, ParseStatus::NeedMore};
      case ChunkedDecoder::Status::End:
        phase = Phase::Done;
        return {consumed, ParseStatus::Done};
      case ChunkedDecoder::Status::TooLarge:
        return refuse_size(consumed);
      case ChunkedDecoder::Status::Malformed:
        return refuse(consumed,
                      Error(Errc::InvalidRequest,
                            fmt::format("malformed chunked body: {}", decoder.problem())));
    }
  }
}

RequestParser::Progress RequestParser::Impl::refuse(std::size_t consumed, Error reason) {
  phase = Phase::Failed;
  error = std::move(reason);
  std::string().swap(carry);
  std::string().swap(body);
  return {consumed, ParseStatus::Failed};
}

RequestParser::Progress RequestParser::Impl::refuse_size(std::size_t consumed) {
  return refuse(consumed, Error(Errc::PayloadTooLarge,
                                fmt::format("request body is larger than the limit of {} bytes",
                                            limits.body_bytes))
                              .with_limit(Limit::BodyBytes));
}

}  // namespace baton::wire
