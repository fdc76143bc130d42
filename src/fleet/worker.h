// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/paged_pool.h"
#include "core/published.h"
#include "fleet/forecasts.h"
#include "fleet/health.h"
#include "fleet/load_notifier.h"
#include "libs/locks/mutex.h"
#include "model/version.h"
#include "model/worker.h"
#include "scheduling/policy/affinity.h"
#include "scheduling/policy/batch_limit.h"
#include "scheduling/policy/load_ledger.h"
#include "scheduling/policy/pace.h"
#include "scheduling/policy/rank_load.h"
#include "scheduling/policy/transfer_pace.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::fleet {

class Worker;

// Is told of the workers' changes of health.
class Watcher {
 public:
  virtual ~Watcher() = default;
  // On the thread that saw it.
  virtual void changed(const Worker& worker, const Health::Change& change) = 0;
};

// How good a choice a worker is now; the earlier the better.
enum class EligibilityTier {
  Good,
  Spare,     // not heard of yet, or it pushed back: a Good one is better
  Doubtful,  // ejected: only if no better worker is left
  Down,      // cannot be reached
  Out,       // draining or misconfigured: not even if no other is left
};

// Role. One engine server: its announcement, its health, and its load.
// Confinement. Any thread; the announcement does not change, the rest is atomic.
// Lifetime. Shared: a request keeps its worker, also after it has left the fleet.
// Invariants. Its load is the sum of its bookings, whatever its health.
class Worker {
 public:
  // The engines' batch size, unless announced.
  static constexpr std::uint64_t kUsualBatch = 8192;
  // Tokens of a KV block, likewise.
  static constexpr std::uint32_t kUsualBlock = 16;

  // Common to workers of one kind: measurements, memory of loads; null: it is the only one.
  struct Siblings {
    std::shared_ptr<scheduling::SiblingPace> pace = {};
    std::shared_ptr<scheduling::TransferPace> transfers = {};
    std::shared_ptr<PagedPool<scheduling::RankLoad>> loads =
        {};  // one thread at a time makes workers
  };

  Worker(model::WorkerId id, model::WorkerSpec spec, const config::Health& health,
         const Siblings& siblings);
  Worker(model::WorkerId id, model::WorkerSpec spec, const config::Health& health)
      : Worker(id, std::move(spec), health, Siblings()) {}
  // The same engine, of which something else is said now: load, health and number go on.
  // Requires: as many ranks as `before`.
  Worker(const Worker& before, model::WorkerSpec spec);

  model::WorkerId id() const { return id_; }
  const model::WorkerSpec& spec() const { return spec_; }
  const std::string& authority() const { return authority_; }  // host:port
  // Its id in the configuration, or host:port.
  const std::string& name() const { return spec_.name.empty() ? authority_ : spec_.name; }
  // Whether `text` is its name, host:port or number.
  bool is_called(std::string_view text) const;
  // Its announced properties, and its address.
  std::span<const std::string> taints() const { return taints_; }
  std::uint32_t ranks() const { return spec_.data_parallel_size; }
  std::int64_t in_flight() const;
  // Requires: rank < ranks().
  std::int64_t in_flight(std::uint32_t rank) const { return state_->loads[rank]->requests(); }
  const std::shared_ptr<scheduling::RankLoad>& load(std::uint32_t rank) const {
    return state_->loads[rank];
  }

  scheduling::Pace& pace(std::uint32_t rank) const { return *state_->paces[rank]; }
  scheduling::TransferPace& transfers(std::uint32_t rank) const { return *state_->transfers[rank]; }
  scheduling::BatchLimit& batch_limit(std::uint32_t rank) const {
    return *state_->batch_limits[rank];
  }
  const Siblings& siblings() const { return state_->siblings; }

  const Health& health() const { return state_->health; }
  Condition condition() const { return state_->health.condition(); }
  EligibilityTier tier(Time now) const;
  bool draining() const { return state_->draining.load(std::memory_order_relaxed); }
  // One word for people: draining, overloaded, or its condition.
  std::string_view state(Time now) const;

  // Reports of requests and probes. See Health.
  void succeeded() { tell(state_->health.succeeded(Clock::now())); }
  void failed(Failure failure, std::string_view why) {
    tell(state_->health.failed(failure, why, Clock::now()));
  }
  void progressed() { tell(state_->health.progressed(Clock::now())); }
  void pushed_back(std::chrono::milliseconds pause) {
    state_->health.pushed_back(pause, Clock::now());
  }
  void answered() { tell(state_->health.answered(Clock::now())); }
  void unreachable(Failure how, std::string_view why) {
    tell(state_->health.unreachable(how, why));
  }
  void eject(std::string_view why) { tell(state_->health.eject(why, Clock::now())); }
  void misconfigured(std::string_view why) { tell(state_->health.misconfigured(why)); }
  // Its release, as last reported; nullopt if it was not asked, or does not say.
  std::optional<model::Version> version() const {
    return state_->version.load(std::memory_order_relaxed);
  }
  void runs(std::optional<model::Version> version) {
    state_->version.store(version, std::memory_order_relaxed);
  }
  // Tokens that a rank computes in one step.
  std::uint64_t max_batched_tokens() const {
    return spec_.max_batched_tokens.value_or(kUsualBatch);
  }
  // Per rank; nullopt if unknown.
  std::optional<std::uint64_t> kv_blocks() const {
    if (spec_.kv_blocks) return spec_.kv_blocks;
    const std::uint64_t told = state_->kv_blocks.load(std::memory_order_relaxed);
    return told == 0 ? std::nullopt : std::optional(told);
  }
  // As last reported by the engine.
  void has_kv_blocks(std::uint64_t blocks) {
    state_->kv_blocks.store(blocks, std::memory_order_relaxed);
  }
  // Token ids of its model are below this; nullopt where it does not say.
  std::optional<std::uint32_t> vocabulary_size() const {
    const std::uint32_t told = state_->vocabulary_size.load(std::memory_order_relaxed);
    return told == 0 ? std::nullopt : std::optional(told);
  }
  void has_vocabulary(std::optional<std::uint32_t> size) {
    state_->vocabulary_size.store(size.value_or(0), std::memory_order_relaxed);
  }
  // The longest context it takes, as it last said; nullopt where it has not.
  std::optional<std::uint64_t> max_model_len() const {
    const std::uint64_t told = state_->max_model_len.load(std::memory_order_relaxed);
    return told == 0 ? std::nullopt : std::optional(told);
  }
  void has_max_model_len(std::uint64_t tokens) {
    state_->max_model_len.store(tokens, std::memory_order_relaxed);
  }
  // Whether it writes chats with code of its own in place of the model's template.
  bool renders_chats_in_code() const {
    return state_->chats_in_code.load(std::memory_order_relaxed);
  }
  void set_renders_chats_in_code(bool in_code) {
    state_->chats_in_code.store(in_code, std::memory_order_relaxed);
  }
  // The adapters it has loaded, as requests name them and as it last said.
  std::shared_ptr<const std::vector<std::string>> adapters() const {
    return state_->adapters.get();
  }
  void has_adapters(std::vector<std::string> names) { state_->adapters.set(std::move(names)); }
  // Whether it changed.
  bool set_draining(bool draining) { return state_->draining.exchange(draining) != draining; }

  // Sets the watcher of changes, in place of an earlier one.
  void watched_by(std::weak_ptr<Watcher> watcher);

 private:
  friend class Booking;
  // The state that survives a new announcement of the worker.
  struct WorkerState {
    WorkerState(const config::Health& options, std::uint32_t ranks, Siblings of_kind);
    Health health;
    std::vector<std::shared_ptr<scheduling::RankLoad>> loads;  // by rank
    const Siblings siblings;
    std::vector<std::unique_ptr<scheduling::Pace>> paces;               // by rank
    std::vector<std::unique_ptr<scheduling::TransferPace>> transfers;   // by rank
    std::vector<std::unique_ptr<scheduling::BatchLimit>> batch_limits;  // by rank
    std::atomic<bool> draining{false};
    std::atomic<std::optional<model::Version>> version{};
    std::atomic<std::uint64_t> kv_blocks{0};        // 0: unknown
    std::atomic<std::uint32_t> vocabulary_size{0};  // likewise
    std::atomic<std::uint64_t> max_model_len{0};    // likewise
    std::atomic<bool> chats_in_code{false};
    Published<std::vector<std::string>> adapters;
    locks::Mutex mutex;
    std::weak_ptr<Watcher> watcher GUARDED_BY(mutex);
  };

  void tell(const Health::News& news) const;

  model::WorkerId id_;
  model::WorkerSpec spec_;
  std::string authority_;
  std::string number_;
  std::vector<std::string> taints_;
  std::shared_ptr<WorkerState> state_;
};

// A request counted on a worker, and on one of its ranks, for as long as this lives.
class Booking {
 public:
  Booking() = default;
  // Counts as a request of which nothing is known. Requires, as the next: rank < worker->ranks().
  explicit Booking(std::shared_ptr<Worker> worker, std::uint32_t rank = 0);
  // `entry` is its load there, `load_notifier` is notified when that falls; `computes`: tokens of
  // the prompt to compute, if any.
  Booking(std::shared_ptr<Worker> worker, std::uint32_t rank, scheduling::LoadLedger::Entry entry,
          std::shared_ptr<LoadNotifier> load_notifier, std::optional<std::uint64_t> computes = {},
          std::optional<Expectation> expectation = {});
  Booking(Booking&& other) noexcept { *this = std::move(other); }
  Booking& operator=(Booking&& other) noexcept {
    std::swap(worker_, other.worker_);
    std::swap(rank_, other.rank_);
    std::swap(trial_, other.trial_);
    std::swap(entry_, other.entry_);
    std::swap(load_notifier_, other.load_notifier_);
    std::swap(computes_, other.computes_);
    std::swap(expectation_, other.expectation_);
    std::swap(sent_, other.sent_);
    std::swap(gaps_, other.gaps_);
    return *this;
  }
  ~Booking();

  // It is being sent to the worker. A booking given back before has cost the worker nothing.
  void sent();
  // The holder gives it back unused. Suppresses the notification: there was room before, and a
  // request that made room so could wake itself forever.
  void withdraw() { load_notifier_.reset(); }
  // Its prompt has been computed; `tokens` of it had to be, if the engine says so.
  void prefill_completed(std::optional<std::uint64_t> tokens = {});
  // The time until an unobserved prefill should be complete: its own prompt and those before it, at
  // its rank's measured speed.
  std::chrono::nanoseconds prefill_due() const;
  // The answer has so many tokens by now.
  void produced(std::uint64_t tokens) {
    entry_.produced(tokens);
    if (gaps_ && gaps_->is_due(tokens)) sample(tokens);
  }
  // Its rank learns how many requests keep their tokens that close; the end notifies, too.
  void watch_gaps(std::chrono::milliseconds objective);

  // The following require: made from a worker and not moved from.
  Worker& worker() const { return *worker_; }
  // For a caller that needs the worker after the booking has ended.
  std::shared_ptr<const Worker> shared_worker() const { return worker_; }
  // Nothing if the worker has only one: then it need not be named.
  std::optional<std::uint32_t> rank() const {
    return worker_->ranks() > 1 ? std::optional(rank_) : std::nullopt;
  }
  scheduling::RankId rank_id() const { return {worker_->id(), rank()}; }

 private:
  friend class Transfer;
  void sample(std::uint64_t tokens);

  std::shared_ptr<Worker> worker_;
  std::uint32_t rank_ = 0;
  bool trial_ = false;  // it shows whether the worker is well again
  scheduling::LoadLedger::Entry entry_;
  std::shared_ptr<LoadNotifier> load_notifier_;
  std::optional<std::uint64_t> computes_;  // until it is done
  std::optional<Expectation> expectation_;
  bool sent_ = false;
  std::unique_ptr<scheduling::TokenGaps> gaps_;  // null: nothing is promised of them
};

// Role. A prompt on its way from the prefill worker that has computed it to the first token of the
//   worker that decodes it.
// Confinement. One thread at a time.
class Transfer {
 public:
  Transfer() = default;  // nothing is on its way
  // From now on. Requires: booking is of the prefill worker.
  Transfer(const Booking& booking, std::uint64_t tokens);
  // The first token is there; a repeated call counts once.
  void arrived();

 private:
  std::shared_ptr<Worker> worker_;
  std::uint32_t rank_ = 0;
  std::uint64_t tokens_ = 0;
  Time begun_;
};

}  // namespace baton::fleet
