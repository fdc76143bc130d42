// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/error.h"
#include "core/memory_budget.h"
#include "engine/shared/dialect.h"
#include "engine/shared/leg_name.h"
#include "fleet/fleet.h"
#include "handoff/poison_guard.h"
#include "handoff/session_context.h"
#include "http_client/exchange.h"

#include <memory>
#include <string>
#include <utility>

namespace baton::handoff {

// Role. The leg of a session that has the prompt computed: sends it, reads its answer, and reports
//   how it went to the session, the scheduler and the worker's health.
// Confinement. One I/O thread.
// Lifetime. Part of a session, which lives until the leg has ended.
// Invariants. Each leg ends with exactly one event, also if it was dropped or has thrown.
class PrefillLeg {
 public:
  PrefillLeg(SessionContext& session, PoisonGuard& poison) : session_(session), poison_(poison) {}

  void begin_attempt() { dropped_ = false; }
  // The worker that the next leg goes to.
  void book(fleet::Booking booking) { booking_ = std::move(booking); }
  const fleet::Booking& booking() const { return booking_; }
  // It does not, because of that error.
  void give_back(Error error);
  // The next leg is about to be sent.
  void begin() { sent_ = false; }
  awaitable<void> run();
  // A task beside the client's flow. `leg` keeps its session.
  static awaitable<void> run_beside(std::shared_ptr<PrefillLeg> leg);
  // Closes the leg, now or when it begins.
  void drop();

  // Its worker has the request.
  bool sent() const { return sent_; }
  bool running() const { return exchange_ != nullptr; }
  // The client's whole answer, if the leg ended the request.
  std::unique_ptr<std::string> take_final_answer() { return std::move(final_answer_); }
  // Why the last leg failed, or no worker was found for it.
  const Error* error() const { return error_.get(); }
  void explain(Error error) { error_ = std::make_unique<Error>(std::move(error)); }

 private:
  void note_sent();
  void answered(fleet::Booking& booking, engine::PrefillOutcome outcome);
  void failed(Error error, fleet::Worker& worker);
  void threw();

  SessionContext& session_;
  PoisonGuard& poison_;
  fleet::Booking booking_;                     // until the leg begins
  http_client::Exchange* exchange_ = nullptr;  // while it runs
  engine::LegName name_;
  MemoryShare answer_memory_;  // of the answer that the outcome is made of
  std::unique_ptr<std::string> final_answer_;
  std::unique_ptr<Error> error_;
  bool sent_ = false;
  bool dropped_ = false;
};

}  // namespace baton::handoff
