// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <atomic>
#include <cstdint>

namespace baton::handoff {

// Role. Draws the ids that let two workers find each other.
// Confinement. Any thread.
// Invariants. disagg_request_id: positive, at least 2^40, never twice from one process, and
//   unlikely to meet another router's. bootstrap_room: 1 … 2^63-1.
class TicketSource {
 public:
  // `unix_millis` and `salt` keep routers and restarts apart.
  TicketSource(std::uint64_t unix_millis, std::uint64_t salt);

  std::uint64_t next_disagg_request_id();
  static std::uint64_t room_from(std::uint64_t random_bits);

 private:
  std::atomic<std::uint64_t> next_;
};

}  // namespace baton::handoff
