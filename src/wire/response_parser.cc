// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/chunked_decoder.h"
#include "wire/head_parser.h"
#include "wire/http_parser.h"
#include "wire/line_scanner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace baton::wire {

struct ResponseParser::Impl {
  enum class Phase { Head, SizedBody, ChunkedBody, BodyUntilClose, Done, Failed };

  explicit Impl(std::size_t limit)
      : header_bytes(limit), scanner(LineScanner::Section::Head, limit) {}

  Progress read_head(std::string_view bytes);
  Progress read_sized(std::string_view bytes);
  Progress read_chunked(std::span<char> bytes);
  // Takes one head off `bytes`. An interim (1xx) one leaves the phase at Head.
  Progress read_one_head(std::string_view bytes);
  void begin_body();
  Progress refuse(std::size_t consumed, std::string problem);

  std::size_t header_bytes;
  Phase phase = Phase::Head;
  LineScanner scanner;
  ChunkedDecoder decoder;
  std::uint64_t body_left = 0;
  std::string carry;  // a head that did not come in one piece
  ResponseHead head;
  std::optional<Error> error;
};

ResponseParser::ResponseParser(std::size_t header_bytes)
    : impl_(std::make_unique<Impl>(header_bytes)) {}
ResponseParser::~ResponseParser() = default;
ResponseParser::ResponseParser(ResponseParser&&) noexcept = default;
ResponseParser& ResponseParser::operator=(ResponseParser&&) noexcept = default;

ResponseHead& ResponseParser::head() { return impl_->head; }
const Error& ResponseParser::error() const { return impl_->error.value(); }
bool ResponseParser::head_done() const { return impl_->head.status != 0; }
void ResponseParser::next() { impl_ = std::make_unique<Impl>(impl_->header_bytes); }

ResponseParser::Progress ResponseParser::feed(std::span<char> bytes) {
  const std::string_view text(bytes.data(), bytes.size());
  switch (impl_->phase) {
    case Impl::Phase::Head:
      return impl_->read_head(text);
    case Impl::Phase::SizedBody:
      return impl_->read_sized(text);
    case Impl::Phase::ChunkedBody:
      return impl_->read_chunked(bytes);
    case Impl::Phase::BodyUntilClose:
      return {text.size(), ParseStatus::NeedMore, text};
    case Impl::Phase::Done:
      return {0, ParseStatus::Done, {}};
    case Impl::Phase::Failed:
      break;
  }
  return {0, ParseStatus::Failed, {}};
}

ParseStatus ResponseParser::finish() {
  Impl& impl = *impl_;
  const bool complete = impl.phase == Impl::Phase::BodyUntilClose ||
                        (impl.phase == Impl::Phase::SizedBody && impl.body_left == 0);
  if (complete) impl.phase = Impl::Phase::Done;
  if (impl.phase == Impl::Phase::Done) return ParseStatus::Done;
  if (impl.phase == Impl::Phase::Failed) return ParseStatus::Failed;
  return impl
      .refuse(0, impl.phase != Impl::Phase::Head ? "engine closed the connection inside its answer"
                 : impl.scanner.started() ? "engine closed the connection inside its answer's head"
                                          : "engine closed the connection without an answer")
      .status;
}

ResponseParser::Progress ResponseParser::Impl::read_head(std::string_view bytes) {
  std::size_t consumed = 0;
  do {
    const Progress progress = read_one_head(bytes.substr(consumed));
    consumed += progress.consumed;
    if (progress.status != ParseStatus::HeadDone) return {consumed, progress.status, {}};
  } while (phase == Phase::Head);
  return {consumed, ParseStatus::HeadDone, {}};
}

ResponseParser::Progress ResponseParser::Impl::read_one_head(std::string_view bytes) {
  const auto [consumed, status] = scanner.scan(bytes);
  switch (status) {
    case LineScanner::Status::NeedMore:
      carry.append(bytes);
      return {consumed, ParseStatus::NeedMore, {}};
    case LineScanner::Status::Malformed:
      return refuse(consumed, fmt::format("malformed HTTP head: {}", scanner.problem()));
    case LineScanner::Status::TooLong: {
      const Progress failed = refuse(
          consumed,
          fmt::format("head of the answer is larger than the limit of {} bytes", header_bytes));
      error->with_limit(Limit::HeaderBytes);
      return failed;
    }
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
  auto parsed = parse_response_head(text);
  if (!parsed) return refuse(consumed, parsed.error().message());
  if (parsed->status == 101)
    return refuse(consumed, "engine switched protocols without being asked");
  scanner = LineScanner(LineScanner::Section::Head, header_bytes);
  if (parsed->status >= 200) {
    head = std::move(*parsed);
    begin_body();
  }
  return {consumed, ParseStatus::HeadDone, {}};
}

void ResponseParser::Impl::begin_body() {
  if (head.status == 204 || head.status == 304) {
    phase = Phase::SizedBody;
    body_left = 0;
  } else if (head.chunked) {
    phase = Phase::ChunkedBody;
  } else if (head.content_length) {
    phase = Phase::SizedBody;
    body_left = *head.content_length;
  } else {
    phase = Phase::BodyUntilClose;
    head.keep_alive = false;
  }
}

ResponseParser::Progress ResponseParser::Impl::read_sized(std::string_view bytes) {
  const std::string_view taken =
      bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(body_left, bytes.size())));
  body_left -= taken.size();
  if (body_left > 0) return {taken.size(), ParseStatus::NeedMore, taken};
  phase = Phase::Done;
  return {taken.size(), ParseStatus::Done, taken};
}

ResponseParser::Progress ResponseParser::Impl::read_chunked(std::span<char> bytes) {
  const std::string_view text(bytes.data(), bytes.size());
  std::size_t consumed = 0;
  // The body grows from the place of its first run, which itself need not move.
  char* body = bytes.data();
  std::size_t body_size = 0;
  while (true) {
    const auto step = decoder.next(text.substr(consumed));
    consumed += step.consumed;
    switch (step.status) {
      case ChunkedDecoder::Status::Data:
        if (body_size == 0) {
          body = bytes.data() + (consumed - step.data.size());
        } else {
          std::memmove(body + body_size, step.data.data(), step.data.size());
        }
        body_size += step.data.size();
        break;
      case ChunkedDecoder::Status::NeedMore:
        return {consumed, ParseStatus::NeedMore, {body, body_size}};
      case ChunkedDecoder::Status::End:
        phase = Phase::Done;
        return {consumed, ParseStatus::Done, {body, body_size}};
      case ChunkedDecoder::Status::TooLarge:  // cannot be: there is no limit
      case ChunkedDecoder::Status::Malformed: {
        // The bytes before the fault are still good.
        Progress failed =
            refuse(consumed, fmt::format("malformed chunked body: {}", decoder.problem()));
        failed.body = {body, body_size};
        return failed;
      }
    }
  }
}

ResponseParser::Progress ResponseParser::Impl::refuse(std::size_t consumed, std::string problem) {
  phase = Phase::Failed;
  error = Error(Errc::EngineProtocol, std::move(problem));
  std::string().swap(carry);
  return {consumed, ParseStatus::Failed, {}};
}

}  // namespace baton::wire
