// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/feeds.h"

#include "kvcache/view/feed_reason.h"
#include "net/await.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <ranges>
#include <string>
#include <thread>
#include <utility>

namespace baton::kvcache {
namespace {

using boost::asio::awaitable;

constexpr std::chrono::milliseconds kRound{250};
// Workers join in bursts, and a look at the fleet goes over all of it: it waits for more to join.
constexpr std::chrono::milliseconds kTogether{50};
// Workers checked in a round without joins and leaves.
constexpr std::size_t kLookedAt = 256;
// The first may have been under way when the engine answered.
constexpr std::uint64_t kRefusals = 2;
// A thread reads more than a million events a second: few are enough for any fleet.
constexpr std::size_t kCoresPerThread = 8;
constexpr std::size_t kMostThreads = 4;

std::size_t thread_count() {
  return std::clamp<std::size_t>(std::thread::hardware_concurrency() / kCoresPerThread, 1,
                                 kMostThreads);
}

}  // namespace

Feeds::Feeds(boost::asio::io_context& io, net::Deadlines& deadlines, net::TaskGroup& tasks,
             net::CpuPool& cpu, fleet::Fleet& fleet, KvCacheView& caches,
             http_client::PoolOptions pool, FactsOf facts, telemetry::Registry& metrics,
             telemetry::Logger& log)
    : io_(io),
      tasks_(tasks),
      fleet_(fleet),
      cache_view_(caches),
      facts_(std::move(facts)),
      log_(log),
      pool_(io, deadlines, pool),
      timer_(io) {
  add_metrics(metrics);
  const config::KvIndex& settings = cache_view_.settings();
  const bool listens = settings.source == config::IndexSource::Auto ||
                       settings.source == config::IndexSource::Events;
  if (listens && !settings.snapshot.empty()) {
    snapshot_.emplace(
        io, cpu, cache_view_.index(), settings, [this] { return to_save(); }, metrics, log);
  }
}

Feeds::~Feeds() = default;

void Feeds::start() {
  if (cache_view_.settings().source == config::IndexSource::Off) return;
  if (snapshot_) {
    snapshot_->read();
    tasks_.spawn(snapshot_->run());
  }
  const auto changed = [this] {
    if (!std::exchange(fleet_changed_, true)) timer_.cancel();
  };
  fleet_.on_added([changed](const auto&, const std::string&) { changed(); });
  fleet_.on_gone([this, changed](model::WorkerId id) {
    pool_.forget(id);
    changed();
  });
  tasks_.spawn(watch());
}

void Feeds::stop() {
  if (std::exchange(stopped_, true)) return;
  timer_.cancel();
  if (snapshot_) snapshot_->stop();
  // The threads close their feeds when they end, all at once.
  for (auto& [holder, listener] : listeners_) {
    listener.thread = nullptr;
    stop_listening(listener);
  }
  threads_.clear();
  pool_.shut_down();
}

awaitable<void> Feeds::save_snapshot() {
  if (snapshot_) co_await snapshot_->save();
}

void Feeds::own_snapshot(bool own) {
  if (snapshot_) snapshot_->own_file(own);
}

bool Feeds::has_taken_up() const {
  if (!snapshot_) return true;
  if (snapshot_->has_unclaimed()) return false;
  return std::ranges::none_of(listeners_ | std::views::values, [](const Listener& listener) {
    const FeedHealth health = listener.cache->health();
    return listener.resumes && (health == FeedHealth::None || health == FeedHealth::Waiting);
  });
}

awaitable<void> Feeds::watch() {
  while (!stopped_) {
    try {
      reconcile();
    } catch (const std::exception& failure) {  // out of memory or descriptors: it may pass
      log_.error("kv_feeds_failed", {{"error", failure.what()}});
    }
    timer_.expires_after(kRound);
    co_await timer_.async_wait(net::kAwait);
    if (stopped_ || !fleet_changed_) continue;
    timer_.expires_after(kTogether);
    co_await timer_.async_wait(net::kAwait);
  }
}

void Feeds::reconcile() {
  if (fleet_changed_) {
    look_at_fleet();
  } else {
    look_at_some();
  }
  look_at_feeds();
  cache_view_.settle(Clock::now());
  if (!table_changed_) return;
  publish();
  table_changed_ = false;
}

void Feeds::look_at_fleet() {
  members_ = fleet_.members();
  unasked_.clear();
  next_member_ = 0;
  std::set<Holder> present;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const fleet::Worker& worker = *members_[i].worker;
    for (std::uint32_t rank = 0; rank < worker.ranks(); ++rank) present.insert({worker.id(), rank});
    const engine::Facts* facts = facts_(worker.id());
    if (facts == nullptr) unasked_.push_back(i);
    join(members_[i], facts);
  }
  for (auto at = listeners_.begin(); at != listeners_.end();)
    at = present.contains(at->first) ? std::next(at) : leave(at);
  fleet_changed_ = false;
}

void Feeds::look_at_some() {
  const std::size_t first = unasked_.size() > kLookedAt ? unasked_.size() - kLookedAt : 0;
  std::rotate(unasked_.begin(), unasked_.begin() + static_cast<std::ptrdiff_t>(first),
              unasked_.end());
  std::erase_if(unasked_, [this, left = kLookedAt](std::size_t at) mutable {
    if (left == 0) return false;
    --left;
    const engine::Facts* facts = facts_(members_[at].worker->id());
    if (facts != nullptr) join(members_[at], facts);
    return facts != nullptr;
  });
  for (std::size_t i = 0; i < std::min(kLookedAt, members_.size()); ++i) {
    const fleet::Fleet::Member& member = members_[next_member_];
    next_member_ = (next_member_ + 1) % members_.size();
    join(member, facts_(member.worker->id()));
  }
}

void Feeds::look_at_feeds() {
  for (const auto& thread : threads_) {
    for (FeedStatus& status : thread->changed()) {
      const auto listener = listeners_.find(status.holder);
      if (listener == listeners_.end() || listener->second.thread != thread.get()) continue;
      listener->second.status = std::move(status);
      assess(listener->second);
    }
  }
  for (const auto& poll : polls_ | std::views::values) {
    for (const FeedStatus& status : poll->statuses()) {
      const auto listener = listeners_.find(status.holder);
      if (listener == listeners_.end() || listener->second.poll != poll) continue;
      listener->second.status = status;
      assess(listener->second);
    }
  }
  // Silence makes no event: holders with due events are checked until one comes.
  for (const Holder holder : cache_view_.take_expecting()) awaited_.insert(holder);
  std::erase_if(awaited_, [this](const Holder& holder) {
    const auto listener = listeners_.find(holder);
    if (listener == listeners_.end()) return true;
    if (!listener->second.status) return false;
    assess(listener->second);
    return !listener->second.cache->overdue_since(listener->second.status->last_batch);
  });
}

void Feeds::join(const fleet::Fleet::Member& member, const engine::Facts* facts) {
  const fleet::Worker& worker = *member.worker;
  const bool wanted = cache_view_.settings().source != config::IndexSource::Decisions;
  bool polls = false;
  for (std::uint32_t rank = 0; rank < worker.ranks(); ++rank) {
    const Holder holder{worker.id(), rank};
    auto at = listeners_.find(holder);
    if (at == listeners_.end()) {
      auto cache =
          cache_view_.make({holder, worker.name(), worker.authority(), member.model->name()},
                           cache_view_.index().join(holder), block_shape(worker.spec(), facts));
      at = listeners_
               .emplace(holder, Listener{.cache = std::move(cache),
                                         .plan = {},
                                         .engine = worker.spec().engine,
                                         .saved_as = SnapshotKeeper::name_of(worker.authority(),
                                                                             worker.spec().instance,
                                                                             member.model->name()),
                                         .thread = nullptr,
                                         .poll = {},
                                         .shape_told = false,
                                         .resumes = false,
                                         .adapter = {},
                                         .away = false,
                                         .status = {},
                                         .refusals = {}})
               .first;
      table_changed_ = true;
    }
    Listener& listener = at->second;
    FeedPlan plan = wanted ? plan_feed(worker.spec(), facts, rank) : FeedPlan();
    // Its last facts hold until it reports others.
    if (wanted && facts == nullptr && plan.way == FeedPlan::Way::None && !worker.spec().kv_feed)
      plan = listener.plan;
    if (facts != nullptr) {
      auto adapter = adapter_of(facts, member.model->name());
      table_changed_ = table_changed_ || adapter != listener.adapter;
      listener.adapter = std::move(adapter);
    }
    if (listener.cache->set_hidden(hidden_by(worker.spec().engine, worker.version())))
      awaited_.insert(holder);
    // A subscription does not notice that its publisher has ended: it waits for another.
    const bool away =
        worker.condition() == fleet::Condition::Unreachable || worker.health().process_ended();
    if (std::exchange(listener.away, away) != away) awaited_.insert(holder);
    const bool adapters = facts != nullptr && serves_adapters(*facts);
    if (adapters && listener.cache->hidden().adapters && listener.cache->mix())
      awaited_.insert(holder);
    if (plan != listener.plan) {
      stop_listening(listener);
      listener.plan = {};
      cache_view_.index().clear(listener.cache->slot());
      listen(listener, worker, plan);
    }
    if (!listener.shape_told) set_shape(listener, block_shape(worker.spec(), facts));
    polls = polls || (plan.way == FeedPlan::Way::Poll &&
                      (!listener.poll || listener.poll->status(holder) == nullptr));
  }
  if (polls) poll(member.worker);
}

void Feeds::listen(Listener& listener, const fleet::Worker& worker, const FeedPlan& plan) {
  listener.shape_told = false;
  if (plan.way != FeedPlan::Way::Subscribe) {
    listener.plan = plan;
    return;
  }
  const Holder holder = listener.cache->identity().holder;
  FeedThread& thread = thread_of(plan.events);
  const auto resume = take_up(listener, plan);
  listener.resumes = resume.has_value();
  thread.open({.holder = holder,
               .name = worker.name(),
               .authority = worker.authority(),
               .engine = worker.spec().engine,
               .events = plan.events,
               .replay = plan.replay,
               .topic = plan.topic,
               .block_size = plan.block_size,
               .resume = resume},
              listener.cache->slot());
  // Only now: a feed that could not be opened is tried again.
  listener.thread = &thread;
  listener.plan = plan;
}

std::optional<Position> Feeds::take_up(Listener& listener, const FeedPlan& plan) {
  // Only a repeat of the last batch shows that the engine is still the same.
  if (!snapshot_ || plan.replay.empty()) return std::nullopt;
  Cache& cache = *listener.cache;
  const auto saved = snapshot_->claim(listener.saved_as, cache.identity().holder.rank);
  if (!saved || (plan.block_size && *plan.block_size != saved->shape.size)) return std::nullopt;
  restore_blocks(cache_view_.index(), cache.slot(), saved->blocks);
  set_shape(listener, saved->shape);
  listener.shape_told = true;
  return Position{.sequence = saved->position.sequence,
                  .payload_hash = saved->position.payload_hash};
}

std::vector<SnapshotKeeper::Source> Feeds::to_save() const {
  std::vector<SnapshotKeeper::Source> sources;
  for (const auto& [holder, listener] : listeners_) {
    if (listener.thread == nullptr || listener.cache->mixed()) continue;
    sources.push_back({.thread = listener.thread,
                       .holder = holder,
                       .slot = listener.cache->slot(),
                       .shape = listener.cache->shape(),
                       .worker = listener.saved_as});
  }
  return sources;
}

// One poll for all workers at an address: an answer has the events of all ranks, and they cannot be
// fetched again, whichever of the server's models they are asked for.
void Feeds::poll(const std::shared_ptr<fleet::Worker>& worker) {
  std::vector<Slot> slots;
  for (std::uint32_t rank = 0; rank < worker->ranks(); ++rank) {
    Listener& listener = listeners_.at({worker->id(), rank});
    stop_listening(listener);
    slots.push_back(listener.cache->slot());
    cache_view_.index().clear(slots.back());
  }
  const auto known = polls_.find(worker->authority());
  const bool fresh = known == polls_.end();
  const auto asks =
      fresh ? std::make_shared<EventPoll>(io_, pool_, log_, cache_view_.index()) : known->second;
  asks->join(worker, slots, worker->spec().block_size);
  if (fresh) polls_.emplace(worker->authority(), asks);
  for (std::uint32_t rank = 0; rank < worker->ranks(); ++rank)
    listeners_.at({worker->id(), rank}).poll = asks;
  if (fresh) tasks_.spawn(asks->run());
}

// Its events, current and past, no longer count.
void Feeds::stop_listening(Listener& listener) {
  const Cache::Identity& identity = listener.cache->identity();
  if (listener.thread != nullptr) listener.thread->close(identity.holder);
  if (listener.poll) {
    listener.poll->leave(identity.holder.worker);
    const auto known = polls_.find(identity.authority);
    if (listener.poll->closed() && known != polls_.end() && known->second == listener.poll)
      polls_.erase(known);
  }
  listener.thread = nullptr;
  listener.poll.reset();
  listener.status.reset();
  listener.refusals.reset();
  listener.cache->set_health(FeedHealth::None);
  listener.cache->set_reason({});
}

Feeds::Listeners::iterator Feeds::leave(Listeners::iterator at) {
  stop_listening(at->second);
  cache_view_.index().leave(at->second.cache->slot());
  cache_view_.forget(at->first);
  table_changed_ = true;
  return listeners_.erase(at);
}

void Feeds::set_shape(Listener& listener, BlockShape shape) {
  if (listener.cache->shape() == shape) return;
  listener.cache->set_shape(shape);
  table_changed_ = true;
}

// An engine that answers publishes already: attempts that were made since should not fail.
bool Feeds::is_unreachable(Listener& listener) const {
  const std::uint64_t refusals = listener.status->refusals;
  if (refusals == 0 || facts_(listener.cache->identity().holder.worker) == nullptr) {
    listener.refusals.reset();
    return false;
  }
  if (!listener.refusals) listener.refusals = refusals;
  return refusals >= *listener.refusals + kRefusals;
}

// Updates the cache's health and the shape of its blocks from the feed.
void Feeds::assess(Listener& listener) {
  Cache& cache = *listener.cache;
  const FeedStatus* status = &*listener.status;
  if (status->shape) {
    set_shape(listener, *status->shape);
    listener.shape_told = true;
  }
  const auto overdue = cache.overdue_since(status->last_batch);
  const bool silent = overdue && Clock::now() - *overdue > cache_view_.settings().silence;
  // Saved blocks count once the engine has shown that it is the same, which a replay does.
  const bool confirmed =
      status->last_batch && status->state != FeedState::Unconfirmed &&
      (status->state != FeedState::Replaying || cache.health() == FeedHealth::Live);
  FeedHealth health = confirmed ? FeedHealth::Live : FeedHealth::Waiting;
  if (silent) health = FeedHealth::Silent;
  // An engine that has served requests answers, whether or not it is asked.
  if (is_unreachable(listener) || (silent && status->refusals > 0))
    health = FeedHealth::Unreachable;
  if (listener.away) health = FeedHealth::Silent;
  if (cache.mixed()) health = FeedHealth::Mixed;
  if (status->state == FeedState::Broken) health = FeedHealth::Broken;
  const FeedHealth before = cache.set_health(health);
  if (before == health) return;
  const Cache::Identity& identity = cache.identity();
  std::string reason = feed_reason(health, listener.plan, listener.engine);
  cache.set_reason(reason);
  // The engine there now need not be the one that the prompts were sent to.
  const bool doubted = before == FeedHealth::Live && health == FeedHealth::Waiting;
  if (doubted) {
    cache_view_.forget(identity.holder);
    reason = "the connection broke, and nothing has shown yet that its engine is the same";
  }
  const auto rank = static_cast<std::int64_t>(identity.holder.rank);
  const Trusted source = cache.trusted(cache_view_.settings().source);
  if (!reason.empty()) {
    log_.warning("kv_feed_down", {{"model", identity.model},
                                  {"worker", identity.worker},
                                  {"rank", rank},
                                  {"feed", to_string(health)},
                                  {"goes_by", to_string(source)},
                                  {"reason", reason}});
  } else if (health == FeedHealth::Live) {
    log_.info("kv_feed_up", {{"model", identity.model},
                             {"worker", identity.worker},
                             {"rank", rank},
                             {"goes_by", to_string(source)}});
  }
}

void Feeds::publish() {
  KvCacheView::Table table;
  for (const auto& [holder, listener] : listeners_) {
    table.caches.emplace(holder, listener.cache);
    HashPlan& plan = table.plans[listener.cache->identity().model];
    const BlockShape shape = listener.cache->shape();
    if (std::ranges::find(plan.shapes, shape) == plan.shapes.end()) plan.shapes.push_back(shape);
    if (plan.lora.empty()) plan.lora = listener.adapter;
  }
  cache_view_.publish(std::move(table));
}

// Feeds that share a socket share a thread.
FeedThread& Feeds::thread_of(const std::string& endpoint) {
  if (threads_.empty()) {
    for (std::size_t i = 0; i < thread_count(); ++i) {
      threads_.push_back(
          std::make_unique<FeedThread>(cache_view_.index(), log_, FeedThread::Options{}));
    }
  }
  return *threads_[std::hash<std::string>()(endpoint) % threads_.size()];
}

std::vector<Feeds::Report> Feeds::reports() const {
  std::map<Holder, FeedStatus> known;
  for (const auto& thread : threads_) {
    for (FeedStatus& status : thread->statuses()) known.emplace(status.holder, std::move(status));
  }
  for (const auto& poll : polls_ | std::views::values) {
    for (const FeedStatus& status : poll->statuses()) known.emplace(status.holder, status);
  }
  std::vector<Report> reports;
  for (const auto& [holder, listener] : listeners_) {
    const auto status = known.find(holder);
    reports.push_back(
        {.cache = listener.cache,
         .plan = listener.plan,
         .status = status == known.end() ? std::optional<FeedStatus>() : status->second});
  }
  return reports;
}

}  // namespace baton::kvcache
