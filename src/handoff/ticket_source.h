// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

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
  // With a rank of `ranks`: the room that leads there, room mod ranks = rank. Room 0 is the
  // engines' own health check and never drawn.
  static std::uint64_t room_for(std::uint64_t random_bits, std::optional<std::uint32_t> rank,
                                std::uint32_t ranks);

 private:
  std::atomic<std::uint64_t> next_;
};

}  // namespace baton::handoff
