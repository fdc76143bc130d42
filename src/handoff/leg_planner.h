// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/result.h"
#include "handoff/decode_leg.h"
#include "handoff/prefill_leg.h"
#include "handoff/session_context.h"
#include "scheduling/scheduler.h"

#include <cstddef>

namespace baton::handoff {

// Role. Prepares the legs of an attempt: has the scheduler book their workers, finds what the decode
//   worker must know of the prefill worker, and draws the ids by which the two meet.
// Confinement. One I/O thread.
// Lifetime. Part of a session. The Cancellation is that of the client's flow, which alone chooses.
class LegPlanner {
 public:
  LegPlanner(SessionContext& session, PrefillLeg& prefill, DecodeLeg& decode,
             Cancellation& cancellation)
      : session_(session), prefill_(prefill), decode_(decode), cancellation_(cancellation) {}

  // Each reports to the session which worker was chosen, or that none was.
  awaitable<void> choose_prefill();
  awaitable<void> choose_decode();

 private:
  std::size_t tries() const;
  void begin_attempt();
  // Whether a decode worker is to compute the prompt itself.
  bool bypasses_prefill();
  void no_prefill(Error why);
  // See Scheduler::place; notes in the trace how the request was admitted.
  awaitable<Result<scheduling::Placement>> place(bool alone);
  void draw_ids(const fleet::Booking& prefill);

  SessionContext& session_;
  PrefillLeg& prefill_;
  DecodeLeg& decode_;
  Cancellation& cancellation_;
  bool bypassed_ = false;  // the decode worker was chosen to do both
};

}  // namespace baton::handoff
