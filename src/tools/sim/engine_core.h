// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "tools/sim/engine_rank.h"
#include "tools/sim/fault_table.h"
#include "tools/sim/options.h"
#include "tools/sim/request.h"
#include "tools/sim/wakeup.h"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace baton::sim {

struct Counters {
  std::uint64_t requests = 0;
  std::uint64_t finished = 0;
  std::uint64_t aborted = 0;
  std::uint64_t failed = 0;
  std::uint64_t expired = 0;             // hand-offs whose lease ended
  std::uint64_t leaked = 0;              // blocks
  std::uint64_t leaked_in_transfer = 0;  // of them
  std::uint64_t fetched = 0;
  std::uint64_t recomputed = 0;
  std::uint64_t refused = 0;
  std::uint64_t unrecognized = 0;  // peers that asked for blocks that are not held
  std::uint64_t stranded = 0;      // pushes that never came, to requests that were closed meanwhile
  std::uint64_t cut_transfers = 0;
  std::uint64_t with_token_ids = 0;
  std::uint64_t token_mismatches = 0;
};

// Blocks that are on their way to a peer.
struct Transfer {
  std::string key;
  std::uint64_t id = 0;
};

struct Fetched {
  Transfer transfer;
  std::vector<TokenId> tokens;  // what the blocks carry, in order
};

// A peer's request. An empty engine id means whichever rank holds the key.
struct PeerCall {
  std::string engine_id;
  std::string key;
  std::vector<BlockId> blocks;
  bool wait = false;
  std::optional<ParallelSizes> sizes;
};

// A prefill leg that answers only when its blocks have been taken.
struct TransferWatch {
  Wakeup changed;
  bool ended = false;
  bool taken = false;
};

// Role. The simulated engine behind the HTTP server: its data-parallel ranks, and the hand-offs
//   that peers ask for without knowing the rank, with their leases.
// Confinement. The server's one thread.
// Lifetime. Owned by the server, as are the faults, which outlive it.
// Invariants. Blocks of a hand-off belong to their rank's pin table from `keep` to release or
//   expiry; a key is held by at most one rank.
class EngineCore {
 public:
  EngineCore(const Options& options, FaultTable& faults);

  boost::asio::awaitable<void> run_leases();
  void stop();

  std::vector<std::unique_ptr<EngineRank>>& ranks() { return ranks_; }
  const std::vector<std::unique_ptr<EngineRank>>& ranks() const { return ranks_; }
  // The rank with the fewest open requests, the lowest of equals.
  EngineRank& least_loaded();

  // A prefill leg with `key` has come: what became of an earlier one is forgotten.
  void expect(const std::string& key) { withdrawn_.erase(key); }
  // Holds `blocks` of `rank` for the peer that asks with `key`.
  void keep(EngineRank& rank, const std::string& key, std::vector<BlockId> blocks,
            std::uint32_t tokens);
  // The prefill leg is gone: frees its blocks and notifies the peers that wait for them. True if
  // they were being transferred.
  bool withdraw(const std::string& key);
  void watch(EngineRank& rank, const std::string& key, TransferWatch* watch);

  // The peer's side of a hand-off.
  // Whether the caller has the right worker at all; it may have come long before the blocks.
  Result<void> greet(const PeerCall& call) const;
  Result<Fetched> fetch(const PeerCall& call);
  // By the peer of `transfer`, or by one that has not fetched and never will.
  Result<void> release(const PeerCall& call, std::optional<std::uint64_t> transfer);
  // The peer is gone before it released what it fetched.
  void give_up(const Transfer& transfer);
  // Returns when blocks can be fetched under `key` or are known never to come.
  boost::asio::awaitable<void> until_kept(std::string key);

  // Prefill engines that have pushed to this one before.
  void meet(const std::string& engine_id) { met_.insert(engine_id); }
  bool has_met(const std::string& engine_id) const { return met_.contains(engine_id); }

  Counters& counters() { return counters_; }
  const Counters& counters() const { return counters_; }

 private:
  struct Watched {
    TransferWatch* watch;
    EngineRank* rank;
  };

  EngineRank* holder(const std::string& key);
  bool can_fetch(const std::string& key);
  Result<EngineRank*> rank_asked_for(const PeerCall& call);
  void free_pin(const std::string& key);
  void end_watch(const std::string& key, bool taken);
  void wake_room(const std::string& key);

  std::vector<std::unique_ptr<EngineRank>> ranks_;  // never empty
  Counters counters_;
  std::chrono::nanoseconds lease_;
  ParallelSizes sizes_;
  bool fetch_again_;  // a fetch that was given up can be repeated
  std::unordered_map<std::string, Watched> watches_;
  std::multimap<std::string, Wakeup*> room_waiters_;
  std::unordered_map<std::string, TimePoint> withdrawn_;  // keys, until when they are remembered
  std::set<std::string> met_;
  Wakeup leases_;
  bool stopping_ = false;
};

}  // namespace baton::sim
