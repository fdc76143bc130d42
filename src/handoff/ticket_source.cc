// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/ticket_source.h"

namespace baton::handoff {
namespace {

constexpr std::uint64_t kInt64Max = 0x7fff'ffff'ffff'ffffULL;
constexpr int kSaltBits = 10;
constexpr int kCounterBits = 12;

}  // namespace

// 41 bits of milliseconds, 10 bits of salt, a 12-bit counter: 4,096 ids per millisecond before the
// counter runs into the next millisecond, which is still a unique id.
TicketSource::TicketSource(std::uint64_t unix_millis, std::uint64_t salt)
    : next_(((unix_millis << (kSaltBits + kCounterBits)) |
             ((salt & ((1U << kSaltBits) - 1)) << kCounterBits)) &
            kInt64Max) {}

std::uint64_t TicketSource::next_disagg_request_id() {
  constexpr std::uint64_t kSmallest = std::uint64_t{1} << 40;
  const std::uint64_t id = next_.fetch_add(1, std::memory_order_relaxed) & kInt64Max;
  return id < kSmallest ? id + kSmallest : id;
}

std::uint64_t TicketSource::room_for(std::uint64_t random_bits, std::optional<std::uint32_t> rank,
                                     std::uint32_t ranks) {
  const std::uint64_t draw = random_bits & kInt64Max;
  if (!rank || ranks == 0) return draw == 0 ? 1 : draw;
  const std::uint64_t most = (kInt64Max - *rank) / ranks;
  const std::uint64_t room = draw % (most + 1) * ranks + *rank;
  return room == 0 ? ranks : room;
}

}  // namespace baton::handoff
