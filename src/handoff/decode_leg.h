// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/error.h"
#include "engine/shared/dialect.h"
#include "engine/shared/leg_name.h"
#include "fleet/fleet.h"
#include "handoff/poison_guard.h"
#include "handoff/session_context.h"
#include "handoff/suspects.h"
#include "http_client/exchange.h"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace baton::handoff {

// Role. The leg of a session whose answer the client gets, also from a worker that does both parts:
//   sends it, and reports how it went to the session, the scheduler and the worker's health. Others
//   read the answer.
// Confinement. One I/O thread.
// Lifetime. Part of a session.
// Invariants. A leg whose run() accepts it, ends with one of finished(), failed() and end().
class DecodeLeg {
 public:
  DecodeLeg(SessionContext& session, PoisonGuard& poison) : session_(session), poison_(poison) {}

  // A worker is chosen for the next leg.
  void begin();
  void book(fleet::Booking booking) { booking_ = std::move(booking); }
  // Until its answer begins, or it has failed.
  awaitable<void> run();
  // Closes the leg, now or when it begins.
  void drop();

  http_client::Exchange& stream() { return *exchange_; }
  void first_token();
  void produced(std::uint64_t tokens) { booking_.produced(tokens); }
  void finished();
  // Before failed(), with the same error: whether the worker's process has ended.
  awaitable<void> look_for_end(const Error& error);
  void failed(Error error, std::string error_type = {});
  // The client reads no further.
  void abandon();
  void end();

  bool live() const { return exchange_ != nullptr; }
  bool dropped() const { return dropped_; }
  // Why the last leg failed, or no worker was found for it.
  const Error* error() const { return error_.get(); }
  void explain(Error error) { error_ = std::make_unique<Error>(std::move(error)); }

 private:
  awaitable<LegBody> body(bool alone, const ClientMessage& client) const;
  bool frees_blocks(const engine::DecodeEnd& end) const;
  // The router will not see when the prompt has been computed.
  void prefill_unseen(const boost::asio::any_io_executor& home);

  SessionContext& session_;
  PoisonGuard& poison_;
  fleet::Booking booking_;
  std::unique_ptr<boost::asio::steady_timer> unseen_;  // until its prompt must have been computed
  std::unique_ptr<http_client::Exchange> exchange_;
  engine::LegName name_;
  Suspects::Time sent_at_{};
  std::unique_ptr<Error> error_;
  bool dropped_ = false;
  bool accepted_ = false;  // its worker has answered 200
};

}  // namespace baton::handoff
