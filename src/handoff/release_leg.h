// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/shared/dialect.h"
#include "fleet/fleet.h"
#include "handoff/poison_guard.h"
#include "handoff/session_context.h"
#include "model/worker.h"
#include "scheduling/policy/constraints.h"
#include "scheduling/worker_requirements.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace baton::handoff {

// Role. Relieves a prefill worker of blocks that are not needed: has a decode worker fetch them, with
//   a leg of one token, and tries others until they are surely free or their lease is over.
// Confinement. One I/O thread.
// Lifetime. A task of its own, independent of the session's next steps: it has its own references
//   to the attempt's state. Its session lives until it has ended.
class ReleaseLeg {
 public:
  // For the blocks of the attempt under way.
  explicit ReleaseLeg(SessionContext& session);

  awaitable<void> run();

 private:
  // True if nothing is left to do.
  awaitable<bool> try_once();
  awaitable<void> find_holder_again();

  SessionContext& session_;
  model::HandoffMode mode_;            // as the legs are spoken
  std::shared_ptr<fleet::Pool> pool_;  // with the workers that can take the blocks over
  model::HandoffMode workers_;         // theirs
  std::shared_ptr<const fleet::Worker> holder_;
  std::uint32_t rank_;  // of the holder
  std::shared_ptr<engine::HandoffTicket> ticket_;
  std::shared_ptr<const engine::PrefillOutcome> outcome_;
  scheduling::Constraints transfer_;
  std::shared_ptr<const ClientMessage> client_;
  std::unique_ptr<const engine::Progress> progress_;
  scheduling::Excluded failed_;
  int in_vain_ = 0;  // waited for until their time was over
};

// Role. Sends a session's releases. Those of a request that may end workers are held back: each
//   would be one worker more that has to do with it.
// Confinement. One I/O thread.
// Lifetime. Part of a session.
class Releases {
 public:
  Releases(SessionContext& session, const PoisonGuard& poison)
      : session_(session), poison_(poison) {}

  // Releases the blocks of the attempt under way.
  void release();
  // No later event will show more of the request. A condemned one is sent nowhere.
  void send_held();

 private:
  void send(ReleaseLeg leg);

  SessionContext& session_;
  const PoisonGuard& poison_;
  std::vector<ReleaseLeg> held_;
};

}  // namespace baton::handoff
