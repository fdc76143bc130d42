// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/block_change.h"
#include "tools/sim/options.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <deque>
#include <span>

namespace baton::sim {

// Role. One rank's KV events, kept like in TensorRT-LLM until they are fetched.
// Confinement. One thread.
// Lifetime. Owned by the rank's reporter.
// Invariants. Event ids count on whatever becomes of the events. At most as many as the buffer
//   holds are kept; the oldest go first.
class TrtllmEvents {
 public:
  TrtllmEvents(const Options& options, std::uint32_t rank);

  // `copies` 0: they get lost.
  void add(std::span<const BlockChange> changes, unsigned copies = 1);
  // Moves all that is kept to the end of `out`.
  void drain(nlohmann::ordered_json& out);
  // Like a new process.
  void restart();

 private:
  void add_event(nlohmann::ordered_json data, unsigned copies);
  nlohmann::ordered_json stored(const BlocksStored& change) const;

  const Options& options_;
  std::uint32_t rank_;
  std::uint64_t next_id_ = 0;
  std::deque<nlohmann::ordered_json> kept_;
};

}  // namespace baton::sim
