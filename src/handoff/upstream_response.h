// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "engine/shared/dialect.h"
#include "http_client/exchange.h"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace baton::handoff {

class HandoffSession;

// Role. The client's answer from a worker, and the way to report how reading it went.
// Confinement. The request's I/O thread.
// Lifetime. Ends before the request's Cancellation. Destroying one that is not finished() gives the
//   request up, as if the client had left.
class UpstreamResponse {
 public:
  explicit UpstreamResponse(std::shared_ptr<HandoffSession> session)
      : session_(std::move(session)) {}
  UpstreamResponse(UpstreamResponse&&) = default;
  UpstreamResponse& operator=(UpstreamResponse&&) =
      delete;  // its old session would be dropped without being given up
  ~UpstreamResponse();

  // Requires: called once, before anything else. See Handoff::run.
  boost::asio::awaitable<Result<void>> begin();

  // The request ended in the prefill: this is the whole answer, as JSON. Otherwise there is a
  // stream.
  std::optional<std::string>& whole();
  // A worker that has answered 2xx and is about to send the body.
  http_client::Exchange& stream();

  // A byte of the body has come: the KV cache was there.
  void first_token();
  // The answer has so many tokens by now.
  void produced(std::uint64_t tokens);
  // The answer is complete.
  void finished();
  // The answer has taken a turn that another worker could not follow.
  void forbid_migration();
  // Reading the stream failed, by its connection or by its content. Returns when there is another
  // answer to read (again whole() or stream()), or with the error for the client. `progress`: the
  // text that the client has already, if another worker could continue it.
  boost::asio::awaitable<Result<void>> recover(Error error, const engine::Progress* progress);

  // Two workers served: the prefill's report on the prompt, once it has answered.
  bool handed_off() const;
  std::shared_ptr<const engine::PrefillOutcome> prefill() const;
  // Waits a short while for a prefill leg that runs beside the stream; if its answer is `needed`,
  // until it has ended.
  boost::asio::awaitable<void> await_prefill(bool needed);

 private:
  std::shared_ptr<HandoffSession> session_;
};

}  // namespace baton::handoff
