// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "overlap/feeds.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <exception>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <utility>

namespace baton::overlap {
namespace {

using boost::asio::awaitable;
using kvevents::FeedState;
using kvevents::FeedStatus;
using kvindex::Holder;

constexpr std::chrono::milliseconds kRound{250};
// A thread reads more than a million events a second: few are enough for any fleet.
constexpr std::size_t kCoresPerThread = 8;
constexpr std::size_t kMostThreads = 4;

std::size_t thread_count() {
  return std::clamp<std::size_t>(std::thread::hardware_concurrency() / kCoresPerThread, 1,
                                 kMostThreads);
}

// The adapter that `model` is at this worker; empty where it is none.
std::string adapter_of(const engine::Facts* facts, const std::string& model) {
  if (facts == nullptr) return {};
  const auto card = std::ranges::find(facts->models, model, &engine::Facts::Card::id);
  return card != facts->models.end() && !card->parent.empty() ? model : std::string();
}

}  // namespace

Feeds::Feeds(boost::asio::io_context& io, net::Deadlines& deadlines, net::TaskGroup& tasks,
             net::CpuPool& cpu, fleet::Fleet& fleet, Caches& caches, engine::PoolOptions pool,
             FactsOf facts, telemetry::Registry& metrics, telemetry::Logger& log)
    : io_(io),
      tasks_(tasks),
      fleet_(fleet),
      caches_(caches),
      facts_(std::move(facts)),
      log_(log),
      pool_(io, deadlines, pool),
      timer_(io) {
  add_metrics(metrics);
  const config::KvIndex& settings = caches_.settings();
  const bool listens = settings.source == config::IndexSource::Auto ||
                       settings.source == config::IndexSource::Events;
  if (listens && !settings.snapshot.empty()) {
    snapshot_.emplace(
        io, cpu, caches_.index(), settings, [this] { return to_save(); }, metrics, log);
  }
}

Feeds::~Feeds() = default;

void Feeds::start() {
  if (caches_.settings().source == config::IndexSource::Off) return;
  if (snapshot_) {
    snapshot_->read();
    tasks_.spawn(snapshot_->run());
  }
  // What is waiting is looked at at once.
  fleet_.on_seated([this](const auto&, const std::string&) { timer_.cancel(); });
  fleet_.on_gone([this](model::WorkerId id) {
    pool_.forget(id);
    timer_.cancel();
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

awaitable<void> Feeds::watch() {
  while (!stopped_) {
    try {
      reconcile();
    } catch (const std::exception& failure) {  // out of memory or descriptors: it may pass
      log_.error("kv_feeds_failed", {{"error", failure.what()}});
    }
    timer_.expires_after(kRound);
    co_await timer_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }
}

void Feeds::reconcile() {
  std::set<Holder> present;
  for (const fleet::Fleet::Member& member : fleet_.members()) {
    const model::WorkerId id = member.worker->id();
    for (std::uint32_t rank = 0; rank < member.worker->ranks(); ++rank) present.insert({id, rank});
    join(member, facts_(id));
  }
  for (auto at = listeners_.begin(); at != listeners_.end();)
    at = present.contains(at->first) ? std::next(at) : leave(at);
  const Statuses known = statuses();
  for (auto& [holder, listener] : listeners_) {
    const auto status = known.find(holder);
    judge(listener, status == known.end() ? nullptr : &status->second);
  }
  caches_.settle(Clock::now());
  publish();
}

void Feeds::join(const fleet::Fleet::Member& member, const engine::Facts* facts) {
  const fleet::Worker& worker = *member.worker;
  const bool wanted = caches_.settings().source != config::IndexSource::Decisions;
  bool polls = false;
  for (std::uint32_t rank = 0; rank < worker.ranks(); ++rank) {
    const Holder holder{worker.id(), rank};
    auto at = listeners_.find(holder);
    if (at == listeners_.end()) {
      auto cache = std::make_shared<Cache>(
          Cache::Identity{holder, worker.name(), worker.authority(), member.model->name()},
          caches_.index().join(holder), block_shape(worker.spec(), facts));
      at = listeners_
               .emplace(holder, Listener{.cache = std::move(cache),
                                         .plan = {},
                                         .saved_as = SnapshotKeeper::name_of(worker.authority(),
                                                                             worker.spec().instance,
                                                                             member.model->name()),
                                         .thread = nullptr,
                                         .poll = {},
                                         .shape_told = false,
                                         .adapter = {}})
               .first;
    }
    Listener& listener = at->second;
    FeedPlan plan = wanted ? plan_feed(worker.spec(), facts, rank) : FeedPlan();
    // What it said of itself holds until it says something else.
    if (wanted && facts == nullptr && plan.way == FeedPlan::Way::None && !worker.spec().kv_feed)
      plan = listener.plan;
    if (facts != nullptr) listener.adapter = adapter_of(facts, member.model->name());
    if (plan != listener.plan) {
      stop_listening(listener);
      caches_.index().clear(listener.cache->slot());
      listen(listener, worker, plan, facts);
    }
    if (!listener.shape_told) listener.cache->set_shape(block_shape(worker.spec(), facts));
    polls = polls || (plan.way == FeedPlan::Way::Poll && !listener.poll);
  }
  if (polls) poll(member.worker, facts);
}

void Feeds::listen(Listener& listener, const fleet::Worker& worker, const FeedPlan& plan,
                   const engine::Facts* facts) {
  listener.plan = plan;
  listener.shape_told = false;
  if (plan.way != FeedPlan::Way::Subscribe) return;
  const Holder holder = listener.cache->identity().holder;
  listener.thread = &thread_of(plan.events);
  std::optional<std::uint32_t> block_size = plan.block_size;
  if (!block_size && facts != nullptr) block_size = facts->block_size;
  const auto resume = take_up(listener, plan, block_size);
  listener.thread->open({.holder = holder,
                         .name = worker.name(),
                         .authority = worker.authority(),
                         .engine = worker.spec().engine,
                         .events = plan.events,
                         .replay = plan.replay,
                         .topic = plan.topic,
                         .block_size = block_size,
                         .resume = resume},
                        listener.cache->slot());
}

std::optional<kvevents::Position> Feeds::take_up(Listener& listener, const FeedPlan& plan,
                                                 std::optional<std::uint32_t> block_size) {
  // Only who repeats the last batch shows that it is the same engine still.
  if (!snapshot_ || plan.replay.empty()) return std::nullopt;
  Cache& cache = *listener.cache;
  const auto saved = snapshot_->claim(listener.saved_as, cache.identity().holder.rank);
  if (!saved || (block_size && *block_size != saved->shape.size)) return std::nullopt;
  kvindex::restore_blocks(caches_.index(), cache.slot(), saved->blocks);
  cache.set_shape(saved->shape);
  listener.shape_told = true;
  return kvevents::Position{.sequence = saved->position.sequence,
                            .payload_hash = saved->position.payload_hash};
}

std::vector<SnapshotKeeper::Source> Feeds::to_save() const {
  std::vector<SnapshotKeeper::Source> sources;
  for (const auto& [holder, listener] : listeners_) {
    if (listener.thread == nullptr) continue;
    sources.push_back({.thread = listener.thread,
                       .holder = holder,
                       .slot = listener.cache->slot(),
                       .shape = listener.cache->shape(),
                       .worker = listener.saved_as});
  }
  std::ranges::sort(sources, {}, &SnapshotKeeper::Source::thread);
  return sources;
}

// One for all ranks, whose events come in one answer.
void Feeds::poll(const std::shared_ptr<fleet::Worker>& worker, const engine::Facts* facts) {
  std::vector<kvindex::Slot> slots;
  for (std::uint32_t rank = 0; rank < worker->ranks(); ++rank)
    slots.push_back(listeners_.at({worker->id(), rank}).cache->slot());
  const auto asks = std::make_shared<EventPoll>(io_, pool_, log_, worker, caches_.index(), slots,
                                                worker->spec().block_size || facts == nullptr
                                                    ? worker->spec().block_size
                                                    : facts->block_size);
  for (std::uint32_t rank = 0; rank < worker->ranks(); ++rank)
    listeners_.at({worker->id(), rank}).poll = asks;
  tasks_.spawn(asks->run());
}

void Feeds::stop_listening(Listener& listener) {
  if (listener.thread != nullptr) listener.thread->close(listener.cache->identity().holder);
  if (listener.poll) listener.poll->close();
  listener.thread = nullptr;
  listener.poll.reset();
  listener.cache->set_health(FeedHealth::None);
}

Feeds::Listeners::iterator Feeds::leave(Listeners::iterator at) {
  stop_listening(at->second);
  caches_.index().leave(at->second.cache->slot());
  caches_.forget(at->first);
  return listeners_.erase(at);
}

Feeds::Statuses Feeds::statuses() const {
  Statuses statuses;
  for (const auto& thread : threads_) {
    for (FeedStatus& status : thread->statuses())
      statuses.emplace(status.holder, std::move(status));
  }
  for (const auto& [holder, listener] : listeners_) {
    if (listener.poll) statuses.emplace(holder, listener.poll->status(holder.rank));
  }
  return statuses;
}

// Whether what the feed says can be used, and what its blocks look like.
void Feeds::judge(Listener& listener, const FeedStatus* status) {
  if (status == nullptr) return;
  Cache& cache = *listener.cache;
  if (status->shape) {
    cache.set_shape(*status->shape);
    listener.shape_told = true;
  }
  const auto overdue = cache.overdue_since(status->last_batch);
  const bool silent = overdue && Clock::now() - *overdue > caches_.settings().silence;
  // What was saved counts when the engine has shown that it is the same, which a replay does.
  const bool confirmed = status->last_batch && (status->state != FeedState::Replaying ||
                                                cache.health() == FeedHealth::Live);
  FeedHealth health = confirmed ? FeedHealth::Live : FeedHealth::Waiting;
  if (silent) health = FeedHealth::Silent;
  if (status->state == FeedState::Broken) health = FeedHealth::Broken;
  const FeedHealth before = cache.set_health(health);
  if (before == health) return;
  const Cache::Identity& identity = cache.identity();
  const auto rank = static_cast<std::int64_t>(identity.holder.rank);
  const Trusted source = cache.trusted(caches_.settings().source);
  if (health == FeedHealth::Silent || health == FeedHealth::Broken) {
    log_.warning("kv_feed_down", {{"model", identity.model},
                                  {"worker", identity.worker},
                                  {"rank", rank},
                                  {"feed", to_string(health)},
                                  {"goes_by", to_string(source)}});
  } else if (health == FeedHealth::Live) {
    log_.info("kv_feed_up", {{"model", identity.model},
                             {"worker", identity.worker},
                             {"rank", rank},
                             {"goes_by", to_string(source)}});
  }
}

void Feeds::publish() {
  Caches::Table table;
  for (const auto& [holder, listener] : listeners_) {
    table.caches.emplace(holder, listener.cache);
    HashPlan& plan = table.plans[listener.cache->identity().model];
    const kvindex::BlockShape shape = listener.cache->shape();
    if (std::ranges::find(plan.shapes, shape) == plan.shapes.end()) plan.shapes.push_back(shape);
    if (plan.lora.empty()) plan.lora = listener.adapter;
  }
  caches_.publish(std::move(table));
}

// Feeds that share a socket share a thread.
kvevents::FeedThread& Feeds::thread_of(const std::string& endpoint) {
  if (threads_.empty()) {
    for (std::size_t i = 0; i < thread_count(); ++i) {
      threads_.push_back(std::make_unique<kvevents::FeedThread>(caches_.index(), log_,
                                                                kvevents::FeedThread::Options{}));
    }
  }
  return *threads_[std::hash<std::string>()(endpoint) % threads_.size()];
}

std::vector<Feeds::Report> Feeds::reports() const {
  const Statuses known = statuses();
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

}  // namespace baton::overlap
