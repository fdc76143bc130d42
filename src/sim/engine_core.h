// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "sim/block_pool.h"
#include "sim/options.h"
#include "sim/pin_table.h"
#include "sim/scheduler.h"
#include "sim/wakeup.h"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace baton::sim {

struct Counters {
  std::uint64_t requests = 0;
  std::uint64_t finished = 0;
  std::uint64_t aborted = 0;
  std::uint64_t failed = 0;
  std::uint64_t leaked = 0;  // blocks
  std::uint64_t fetched = 0;
  std::uint64_t recomputed = 0;
  std::uint64_t refused = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t generation_tokens = 0;
  std::uint64_t cached_tokens = 0;
};

// Told of every token of the sequences it submitted.
class SequenceListener {
 public:
  virtual ~SequenceListener() = default;
  virtual void on_token(TokenProduced& token) = 0;
};

// A prefill leg that answers only when its blocks have been taken.
struct TransferWatch {
  Wakeup changed;
  bool ended = false;
  bool taken = false;
};

// Role. The simulated engine behind the HTTP server: batching in real time, KV blocks, blocks held
//   for other workers and their leases. Machines decide; this class only waits and passes on.
// Confinement. The server's one thread.
// Lifetime. Owned by the server. Listeners withdraw their sequences before they go.
// Invariants. Blocks of a hand-off belong to the pin table from `keep` to release or expiry.
class EngineCore {
 public:
  explicit EngineCore(const Options& options);

  boost::asio::awaitable<void> run_steps();
  boost::asio::awaitable<void> run_leases();
  void stop();

  SequenceId submit(SequenceSpec spec, SequenceListener& listener);
  void abort(SequenceId id);
  void hold(SequenceId id) { scheduler_.hold(id); }
  bool fits(std::size_t prompt_tokens, std::uint32_t output_tokens) const {
    return scheduler_.fits(prompt_tokens, output_tokens);
  }
  void give_back(const std::vector<BlockId>& blocks);

  // Holds `blocks` for whoever comes with `key`.
  void keep(const std::string& key, std::vector<BlockId> blocks, std::uint32_t tokens);
  // The prefill leg is gone: its blocks are freed and whoever waits for them is told.
  void withdraw(const std::string& key);
  void watch(const std::string& key, TransferWatch* watch);

  // The peer's side of a hand-off. Tokens of the blocks asked for, in order.
  Result<std::vector<TokenId>> fetch(const std::string& engine_id, const std::string& key,
                                     const std::vector<BlockId>& blocks);
  void release(const std::string& key);
  // Returns when blocks are held under `key` or are known never to come.
  boost::asio::awaitable<void> until_kept(std::string key);

  const std::string& engine_id() const { return engine_id_; }
  Counters& counters() { return counters_; }
  const Counters& counters() const { return counters_; }
  const BlockPool& pool() const { return pool_; }
  std::uint64_t pinned() const { return pins_.pinned_blocks(); }
  std::uint64_t running() const { return scheduler_.running() + awaiting_transfer_; }
  std::uint64_t waiting() const { return scheduler_.waiting() + fetching; }

  std::uint64_t fetching = 0;  // decode legs whose KV is on its way

 private:
  void end_watch(const std::string& key, bool taken);
  void wake_room(const std::string& key);

  std::string engine_id_;
  BlockPool pool_;
  Scheduler scheduler_;
  PinTable pins_;
  Counters counters_;
  std::chrono::nanoseconds lease_;
  std::unordered_map<SequenceId, SequenceListener*> listeners_;
  std::unordered_map<std::string, TransferWatch*> watches_;
  std::multimap<std::string, Wakeup*> room_waiters_;
  std::unordered_map<std::string, TimePoint> withdrawn_;  // keys, until when they are remembered
  std::uint64_t awaiting_transfer_ = 0;
  Wakeup work_;
  Wakeup leases_;
  bool stopping_ = false;
};

}  // namespace baton::sim
