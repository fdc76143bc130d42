// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/pipeline/recording_sink.h"

#include "net/await.h"

#include <utility>

namespace baton::pipeline {

Result<void> RecordingSink::outcome() const {
  if (gone) return fail(Errc::ClientGone, "the client closed the connection");
  return {};
}

awaitable<Result<void>> RecordingSink::respond(int given_status, const wire::Headers& given_headers,
                                               std::string_view whole) {
  ++answers;
  status = given_status;
  headers = given_headers;
  body = whole;
  ended = true;
  co_return outcome();
}

awaitable<Result<void>> RecordingSink::begin(int given_status, const wire::Headers& given_headers) {
  ++answers;
  status = given_status;
  headers = given_headers;
  co_return outcome();
}

awaitable<Result<void>> RecordingSink::write(std::string_view piece) {
  ++writes;
  body += piece;
  if (slow_) {
    writing_ = true;
    taken_.expires_after(std::chrono::seconds(30));
    co_await taken_.async_wait(net::kAwait);
    writing_ = false;
  }
  co_return outcome();
}

std::optional<Result<void>> RecordingSink::write_now(std::string_view piece) {
  if (slow_) return std::nullopt;
  if (at_once && piece.size() > *at_once) {
    taken_at_once_ = *at_once;
    body += piece.substr(0, taken_at_once_);
    return std::nullopt;
  }
  ++writes;
  body += piece;
  return outcome();
}

awaitable<Result<void>> RecordingSink::write_rest(std::string_view piece) {
  piece.remove_prefix(std::exchange(taken_at_once_, 0));
  return write(piece);
}

awaitable<Result<void>> RecordingSink::end() {
  ended = true;
  co_return outcome();
}

bool RecordingSink::give_up() {
  given_up = true;
  return !ended && !writing_;
}

}  // namespace baton::pipeline
