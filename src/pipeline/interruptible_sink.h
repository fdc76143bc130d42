// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "net/task_group.h"
#include "pipeline/response_sink.h"

#include <boost/asio/steady_timer.hpp>

#include <optional>
#include <string_view>

namespace baton::pipeline {

// Role. The response to a request that may be interrupted while its client waits, because its time
//   is over or the process ends. The client is told at once, though the hand-off that runs for the
//   request may take seconds to end. Its later writes are dropped.
// Confinement. One I/O thread.
// Lifetime. One request. If it was interrupted(), settled() returns before it ends.
// Invariants. The response is written by one at a time. An answer that is being written when the
//   request is given up is not interrupted: its writer finds out by itself.
class InterruptibleSink final : public ResponseSink {
 public:
  InterruptibleSink(ResponseSink& response, net::TaskGroup& tasks, Cancellation& cancellation);

  awaitable<Result<void>> respond(int status, const wire::Headers& headers,
                                  std::string_view body) override;
  awaitable<Result<void>> begin(int status, const wire::Headers& headers) override;
  awaitable<Result<void>> write(std::string_view piece) override;
  awaitable<Result<void>> end() override;
  std::optional<Result<void>> write_now(std::string_view piece) override;
  awaitable<Result<void>> write_rest(std::string_view piece) override;

  // The client is or was told why; nothing else is sent to it.
  bool interrupted() const { return status_ != 0; }
  // The status that the client got. Requires: interrupted().
  int status() const { return status_; }
  // Until the client has been told. Requires: interrupted().
  awaitable<void> settled();

 private:
  void interrupt();
  awaitable<void> tell();
  awaitable<Result<void>> refuse() const;

  ResponseSink& response_;
  net::TaskGroup& tasks_;
  Cancellation& cancellation_;
  std::optional<boost::asio::steady_timer> wake_timer_;  // while settled() waits
  int status_ = 0;
  bool begun_ = false;
  bool told_ = false;
  Cancellation::Listener listener_;  // last: it may call at once
};

}  // namespace baton::pipeline
