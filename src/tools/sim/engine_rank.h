// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/block_pool.h"
#include "tools/sim/fault_table.h"
#include "tools/sim/kv_reporter.h"
#include "tools/sim/options.h"
#include "tools/sim/pin_table.h"
#include "tools/sim/rank_stats.h"
#include "tools/sim/scheduler.h"
#include "tools/sim/wakeup.h"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace baton::sim {

struct TokenCounters {
  std::uint64_t prompt = 0;
  std::uint64_t generated = 0;
  std::uint64_t cached = 0;
};

// Told of every token of the sequences it submitted.
class SequenceListener {
 public:
  virtual ~SequenceListener() = default;
  virtual void on_token(TokenProduced& token) = 0;
};

// Role. One data-parallel rank: its batch in real time, its KV blocks and prefix cache, and the
//   blocks it holds for other workers.
// Confinement. The server's one thread.
// Lifetime. Owned by the engine; the faults outlive it. Listeners withdraw their sequences before they go.
// Invariants. Sequence ids are unique over all ranks of a server; block ids are the rank's own.
class EngineRank {
 public:
  EngineRank(const Options& options, FaultTable& faults, std::uint32_t index,
             std::string engine_id);

  boost::asio::awaitable<void> run_steps();
  void stop();

  SequenceId submit(SequenceSpec spec, SequenceListener& listener);
  void abort(SequenceId id);
  void hold(SequenceId id) { scheduler_.hold(id); }
  bool fits(std::size_t prompt_tokens, std::uint32_t output_tokens) const {
    return scheduler_.fits(prompt_tokens, output_tokens);
  }
  void give_back(const std::vector<BlockId>& blocks);

  // From now on its blocks are told of.
  void report_through(std::optional<KvChannel> channel);
  // Null if no events are configured.
  KvReporter* reporter() { return reporter_.get(); }
  const KvReporter* reporter() const { return reporter_.get(); }
  // Empties the prefix cache; false, and nothing done, while blocks are in use.
  bool reset_cache();

  std::uint32_t index() const { return index_; }
  // This rank's name for peers; each rank has its own, like its block ids.
  const std::string& engine_id() const { return engine_id_; }
  const BlockPool& pool() const { return pool_; }
  PinTable& pins() { return pins_; }
  const PinTable& pins() const { return pins_; }
  std::uint64_t scheduled() const { return scheduler_.running(); }
  std::uint64_t running() const { return scheduled() + awaiting_transfer; }
  std::uint64_t waiting() const { return scheduler_.waiting() + fetching; }

  std::uint64_t requests = 0;           // open ones that were given to this rank
  std::uint64_t fetching = 0;           // decode legs whose KV is on its way
  std::uint64_t awaiting_transfer = 0;  // prefill legs whose blocks were not fetched yet
  TokenCounters tokens;
  RankStats stats;
  std::map<std::string, std::uint64_t> adapters;  // open requests of each

 private:
  void report();

  const Options& options_;
  FaultTable& faults_;
  std::uint32_t index_;
  std::string engine_id_;
  BlockPool pool_;
  std::unique_ptr<KvReporter> reporter_;
  Scheduler scheduler_;
  PinTable pins_;
  std::unordered_map<SequenceId, SequenceListener*> listeners_;
  Wakeup work_;
  bool stopping_ = false;
};

}  // namespace baton::sim
