// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/result.h"
#include "engine/shared/dialect.h"
#include "handoff/decode_leg.h"
#include "handoff/leg_planner.h"
#include "handoff/poison_guard.h"
#include "handoff/prefill_leg.h"
#include "handoff/release_leg.h"
#include "handoff/request.h"
#include "handoff/session_context.h"
#include "handoff/state_machine.h"
#include "handoff/tools.h"
#include "http_client/exchange.h"
#include "net/deadlines.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace baton::handoff {

// Role. One request on its way through prefill and decode: passes events to the state machine,
//   which decides the order of the legs, and has its actions performed by the parts below.
// Confinement. One I/O thread.
// Lifetime. Shared by the client's flow and the tasks beside it, whichever ends last. The client's
//   flow calls leave() before its Cancellation and RequestTrace end.
class HandoffSession final : public SessionEvents {
 public:
  HandoffSession(HandoffTools& tools, HandoffRequest request, RequestTrace& trace,
                 Cancellation& cancellation);

  // The client's flow: until an answer is there to be read, or the error is.
  awaitable<Result<void>> begin();
  void leave();

  // See UpstreamResponse.
  std::optional<std::string>& whole() { return whole_; }
  http_client::Exchange& stream() { return decode_.stream(); }
  void first_token();
  void produced(std::uint64_t tokens) { decode_.produced(tokens); }
  void finished();
  void forbid_migration() { context_.machine.forbid_migration(); }
  awaitable<Result<void>> recover(Error error, const engine::Progress* progress);
  bool handed_off() const { return context_.attempt.handed_off; }
  std::shared_ptr<const engine::PrefillOutcome> prefill() const { return context_.attempt.outcome; }
  awaitable<void> await_prefill(bool needed);

  void dispatch(const Input& input) override;
  void wake() override;

 private:
  void perform(Action action);
  awaitable<Result<void>> proceed();
  awaitable<void> wait_for_something_to_do();
  bool awaits_prefill_request() const;
  awaitable<void> discard_answer();
  void start_grace();
  // The request has been computed.
  void clear_suspicion();
  Error error_of(Cause cause) const;

  SessionContext context_;
  PoisonGuard poison_{context_};
  PrefillLeg prefill_{context_, poison_};
  DecodeLeg decode_{context_, poison_};
  Releases releases_{context_, poison_};
  LegPlanner planner_;
  std::vector<Action> todo_;                               // of the client's flow
  std::unique_ptr<boost::asio::steady_timer> wake_timer_;  // while the client's flow waits
  std::optional<Cancellation::Listener> listener_;         // until the client's flow leaves
  std::unique_ptr<net::Deadline> grace_;
  std::optional<std::string> whole_;
};

}  // namespace baton::handoff
