// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/shared/introspection.h"
#include "fleet/fleet.h"
#include "http_client/upstream_pool.h"
#include "kvcache/events/feed_thread.h"
#include "kvcache/view/event_poll.h"
#include "kvcache/view/feed_plan.h"
#include "kvcache/view/kv_cache_view.h"
#include "kvcache/view/snapshot_keeper.h"
#include "net/cpu_pool.h"
#include "net/deadlines.h"
#include "net/task_group.h"
#include "telemetry/log.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace baton::kvcache {

// Role. Subscribes to every rank of every worker that publishes its cache's events, and assesses
//   whether they can be used.
// Confinement. The control thread.
// Lifetime. Owned by Router; stop() and an empty TaskGroup before it ends.
// Invariants. Level-triggered: the feeds follow from the fleet's current workers, their
//   announcements and their own facts.
class Feeds {
 public:
  // A worker's facts about itself; null if it has not been asked, or has not answered.
  using FactsOf = std::function<const engine::Facts*(model::WorkerId)>;

  // `cpu`: saves the known blocks, if saving is configured.
  Feeds(boost::asio::io_context& io, net::Deadlines& deadlines, net::TaskGroup& tasks,
        net::CpuPool& cpu, fleet::Fleet& fleet, KvCacheView& caches, http_client::PoolOptions pool,
        FactsOf facts, telemetry::Registry& metrics, telemetry::Logger& log);
  ~Feeds();

  void start();
  void stop();

  // Saves to the file with the known blocks, if there is one: see SnapshotKeeper.
  boost::asio::awaitable<void> save_snapshot();
  void own_snapshot(bool own);
  // Whether all that was read from it counts by now, as far as engines are there to confirm it.
  bool has_taken_up() const;

  struct Report {
    std::shared_ptr<Cache> cache;
    FeedPlan plan;
    std::optional<FeedStatus> status;  // nothing where there is no feed
  };
  std::vector<Report> reports() const;

 private:
  struct Listener {
    std::shared_ptr<Cache> cache;
    FeedPlan plan;
    model::Engine engine = model::Engine::Vllm;
    std::string saved_as;                   // see SnapshotKeeper
    FeedThread* thread = nullptr;           // Subscribe
    std::shared_ptr<EventPoll> poll;        // Poll
    bool shape_told = false;                // by its events, or by what was saved of them
    bool resumes = false;                   // what was saved of it is to be confirmed
    std::string adapter;                    // that its model is, as the engine last said
    bool away = false;                      // its worker cannot be reached, or has ended
    std::optional<FeedStatus> status;       // when it was last looked at
    std::optional<std::uint64_t> refusals;  // of it when its engine first answered
  };
  using Listeners = std::map<Holder, Listener>;

  boost::asio::awaitable<void> watch();
  void reconcile();
  // Checks the workers, some at a time: their facts change without notice.
  void look_at_fleet();
  void look_at_some();
  void look_at_feeds();
  void join(const fleet::Fleet::Member& member, const engine::Facts* facts);
  void listen(Listener& listener, const fleet::Worker& worker, const FeedPlan& plan);
  // Restores saved blocks; returns their position.
  std::optional<Position> take_up(Listener& listener, const FeedPlan& plan);
  std::vector<SnapshotKeeper::Source> to_save() const;
  void poll(const std::shared_ptr<fleet::Worker>& worker);
  void stop_listening(Listener& listener);
  Listeners::iterator leave(Listeners::iterator at);
  void assess(Listener& listener);
  bool is_unreachable(Listener& listener) const;
  void set_shape(Listener& listener, BlockShape shape);
  void publish();
  FeedThread& thread_of(const std::string& endpoint);
  void add_metrics(telemetry::Registry& metrics);

  boost::asio::io_context& io_;
  net::TaskGroup& tasks_;
  fleet::Fleet& fleet_;
  KvCacheView& cache_view_;
  FactsOf facts_;
  telemetry::Logger& log_;
  http_client::UpstreamPool pool_;
  boost::asio::steady_timer timer_;
  std::vector<std::unique_ptr<FeedThread>> threads_;
  Listeners listeners_;
  std::map<std::string, std::shared_ptr<EventPoll>> polls_;  // by authority
  std::vector<fleet::Fleet::Member> members_;                // when the fleet last changed
  std::vector<std::size_t> unasked_;                         // of members_: those without facts yet
  std::size_t next_member_ = 0;                              // to be looked at
  bool fleet_changed_ = true;
  bool table_changed_ = true;               // so it is to be published
  std::set<Holder> awaited_;                // events of theirs are due
  std::optional<SnapshotKeeper> snapshot_;  // nothing: nothing is saved
  bool stopped_ = false;
};

}  // namespace baton::kvcache
