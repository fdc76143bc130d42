// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/error.h"
#include "fleet/worker.h"
#include "handoff/session_context.h"
#include "handoff/suspects.h"

#include <cstddef>
#include <memory>
#include <string_view>

namespace baton::handoff {

// Role. Keeps a request under which several workers' processes have ended from all others: it
//   records those ends in the model's Suspects, and condemns the request.
// Confinement. One I/O thread.
// Lifetime. Part of a session.
// Invariants. A condemned request stays so.
class PoisonGuard {
 public:
  explicit PoisonGuard(SessionContext& session) : session_(session) {}

  // Before a worker is chosen: whether none is to have the request any more.
  bool is_poison_by_now();
  // The worker's process has ended under a leg that was sent at that time and had not got its first
  // token.
  void ended_under(const fleet::Worker& worker, Suspects::Time sent);
  // The request has been computed, and its worker lives.
  void clear();

  // A worker has ended under it, and it may be the reason.
  bool suspect() const { return suspect_; }
  // The client's error; null unless the request is condemned.
  const Error* poison() const { return poison_.get(); }

 private:
  Suspects::Request request_seen() const;
  void condemn(std::size_t ended_workers, std::string_view last);

  SessionContext& session_;
  bool suspect_ = false;
  std::unique_ptr<Error> poison_;
};

}  // namespace baton::handoff
