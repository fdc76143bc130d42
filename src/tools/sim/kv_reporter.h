// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/block_pool.h"
#include "tools/sim/fault_table.h"
#include "tools/sim/kv_channel.h"
#include "tools/sim/kv_event.h"
#include "tools/sim/trtllm_events.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace baton::sim {

// Role. Reports the changes in one rank's blocks: a batch for each step that changed any, or a
//   false one under a fault.
// Confinement. The server's one thread.
// Lifetime. Owned by the rank, whose pool it reads; the options and faults outlive it.
// Invariants. Without faults, a subscriber that reads all batches knows the pool's table.
class KvReporter {
 public:
  struct Counters {
    std::uint64_t batches = 0;
    std::uint64_t events = 0;
  };

  KvReporter(const Options& options, std::uint32_t rank, BlockPool& pool, FaultTable& faults,
             std::optional<KvChannel> channel);

  // Tells of all that changed since the last call.
  void report();
  // Sends what was delayed and answers replays.
  void serve();
  // TensorRT-LLM's events that were not fetched yet.
  void drain(nlohmann::ordered_json& out);
  // The cache is empty and everything is counted anew, as in a new process. Only SGLang says so.
  void restart();

  std::optional<std::uint64_t> next_sequence() const;
  const Counters& counters() const { return counters_; }

 private:
  void publish(std::vector<BlockChange> changes, const std::optional<Fault>& fault);

  std::uint32_t rank_;
  BlockPool& pool_;
  FaultTable& faults_;
  EventFormat format_;
  bool says_cleared_at_start_;
  std::optional<KvChannel> channel_;
  std::optional<TrtllmEvents> fetched_;
  Counters counters_;
};

}  // namespace baton::sim
