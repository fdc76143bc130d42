// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/interruptible_sink.h"

#include "net/await.h"
#include "pipeline/error_body.h"
#include "wire/http_status.h"

#include <boost/asio/this_coro.hpp>

#include <chrono>
#include <string>

namespace baton::pipeline {

InterruptibleSink::InterruptibleSink(ResponseSink& response, net::TaskGroup& tasks,
                                     Cancellation& cancellation)
    : response_(response),
      tasks_(tasks),
      cancellation_(cancellation),
      listener_(cancellation, [this] { interrupt(); }) {}

// Not coroutines: each piece of a stream passes here.
awaitable<Result<void>> InterruptibleSink::respond(int status, const wire::Headers& headers,
                                                   std::string_view body) {
  return interrupted() ? refuse() : response_.respond(status, headers, body);
}

awaitable<Result<void>> InterruptibleSink::begin(int status, const wire::Headers& headers) {
  if (interrupted()) return refuse();
  begun_ = true;
  return response_.begin(status, headers);
}

awaitable<Result<void>> InterruptibleSink::write(std::string_view piece) {
  return interrupted() ? refuse() : response_.write(piece);
}

std::optional<Result<void>> InterruptibleSink::write_now(std::string_view piece) {
  if (interrupted()) return fail(cancellation_.reason());
  return response_.write_now(piece);
}

awaitable<Result<void>> InterruptibleSink::write_rest(std::string_view piece) {
  return interrupted() ? refuse() : response_.write_rest(piece);
}

awaitable<Result<void>> InterruptibleSink::end() {
  return interrupted() ? refuse() : response_.end();
}

void InterruptibleSink::interrupt() {
  const Error& reason = cancellation_.reason();
  if (reason.code() == Errc::ClientGone || !response_.give_up()) return;
  status_ = begun_ ? wire::kOk : reason.http_status();
  tasks_.spawn(tell());
}

awaitable<void> InterruptibleSink::tell() {
  const Error& reason = cancellation_.reason();
  if (begun_) {
    // Inside the stream, which ends without [DONE].
    const std::string event = error_event(reason);
    if (co_await response_.write(event)) co_await response_.end();
  } else {
    const std::string body = error_body(reason);
    co_await response_.respond(status_, error_headers(reason), body);
  }
  told_ = true;
  if (wake_timer_) wake_timer_->cancel();
}

awaitable<void> InterruptibleSink::settled() {
  if (told_) co_return;
  wake_timer_.emplace(co_await boost::asio::this_coro::executor);
  wake_timer_->expires_at(std::chrono::steady_clock::time_point::max());
  co_await wake_timer_->async_wait(net::kAwait);
}

awaitable<Result<void>> InterruptibleSink::refuse() const {
  co_return fail(cancellation_.reason());
}

}  // namespace baton::pipeline
