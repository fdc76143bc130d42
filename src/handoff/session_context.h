// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/error.h"
#include "engine/shared/dialect.h"
#include "engine/shared/leg_name.h"
#include "fleet/fleet.h"
#include "handoff/leg_message.h"
#include "handoff/request.h"
#include "handoff/state_machine.h"
#include "handoff/tools.h"
#include "model/worker.h"
#include "scheduling/queue/prefill_coalescer.h"
#include "scheduling/scheduler.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace baton::handoff {

// Role. Takes the reports of a session's parts. The session implements it.
// Confinement. One I/O thread.
// Lifetime. Tasks that may outlive the client's flow share it.
class SessionEvents : public std::enable_shared_from_this<SessionEvents> {
 public:
  // Asks the machine, and performs its actions; those of the client's flow after this call.
  virtual void dispatch(const Input& input) = 0;
  // Something else has changed that the client's flow may wait for.
  virtual void wake() = 0;

 protected:
  ~SessionEvents() = default;
};

// State that the legs of one attempt share.
struct Attempt {
  std::shared_ptr<engine::HandoffTicket> ticket;  // a leg keeps it until its request is sent
  std::optional<model::HandoffMode> mode;         // of the prefill worker chosen last
  std::shared_ptr<const fleet::Worker> prefill_worker;
  std::uint32_t prefill_rank = 0;
  // The prefill's answer; empty, but never null, before it comes.
  std::shared_ptr<const engine::PrefillOutcome> outcome;
  scheduling::LeaderLease lease;  // others wait for this prompt
  fleet::Transfer transfer;       // from the end of the prefill leg to the first token
  bool handed_off = false;        // the decode leg was sent with a hand-off
  bool streaming = false;         // it has its first token
};

// Role. State that the parts of one session share: the tools and the request, the machine, which
//   decides, the scheduler, which chooses workers, and the state of the attempt.
// Confinement. One I/O thread.
// Lifetime. Part of the session.
struct SessionContext {
  SessionContext(HandoffTools& with, HandoffRequest wanted, RequestTrace& report,
                 SessionEvents& session);
  SessionContext(const SessionContext&) = delete;
  SessionContext& operator=(const SessionContext&) = delete;

  // A new attempt at the hand-off, or by one worker.
  void begin_attempt();
  // The first token is there: what is only needed to send legs is freed, unless the answer may be
  // continued.
  void free_material();
  // The request id of the next leg to the worker, where its engine can abort by that.
  engine::LegName name_leg(const fleet::Worker& worker);
  // Has the worker stop a leg that was given up.
  void abort(std::shared_ptr<const fleet::Worker> worker, engine::LegName name) const;
  // The error of a leg may come of what Baton knew of the prefill worker: it is asked again.
  void invalidate_peer_if_stale(const Error& error);
  // The prompt was computed for an answer that no client gets.
  void count_waste() const;

  HandoffTools& tools;
  HandoffRequest request;
  LegMessages messages;
  scheduling::Scheduler scheduler;
  HandoffStateMachine machine;
  SessionEvents& events;
  RequestTrace* trace;                          // null once the client's flow has left
  std::optional<Error> gone;                    // why the answer is not wanted any more
  std::shared_ptr<const ClientMessage> client;  // null once nothing can be sent any more
  std::unique_ptr<engine::Progress> progress;   // the text to continue
  std::unique_ptr<std::string> authorization;   // to abort legs with, as they had it
  Attempt attempt;
};

}  // namespace baton::handoff
