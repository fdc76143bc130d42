// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/feed_thread.h"

#include "kvcache/events/event_subscriber.h"
#include "kvcache/events/feed_reader.h"
#include "libs/locks/mutex.h"

#include <csignal>
#include <deque>
#include <exception>
#include <future>
#include <map>
#include <pthread.h>
#include <string>
#include <thread>
#include <utility>

namespace baton::kvcache {

// State behind the mutex is shared by the callers and the feed's thread. The rest is the thread's.
struct FeedThread::State {
  State(Index& index, telemetry::Logger& log, Options options)
      : context{.index = index, .log = log, .options = options} {}

  using Command = std::packaged_task<void()>;
  std::future<void> post(std::function<void()> work);
  void run();
  bool run_commands();  // false: it is over
  void open(FeedSpec spec, Slot slot, std::shared_ptr<StatusCell> cell);
  void close(Holder holder);

  struct Open {
    std::shared_ptr<StatusCell> cell;
    std::unique_ptr<FeedReader> reader;
    EventSubscriber* subscriber;
  };

  FeedContext context;
  std::map<std::string, std::unique_ptr<EventSubscriber>> subscribers;  // by endpoint
  std::map<Holder, Open> open_feeds;
  std::uint64_t subscribers_made = 0;

  locks::Mutex mutex;
  std::deque<Command> commands GUARDED_BY(mutex);
  std::map<Holder, std::shared_ptr<StatusCell>> cells GUARDED_BY(mutex);
  bool stopping GUARDED_BY(mutex) = false;

  std::thread thread;
};

FeedThread::FeedThread(Index& index, telemetry::Logger& log, Options options)
    : state_(std::make_unique<State>(index, log, options)) {
  state_->thread = std::thread([state = state_.get()] {
    pthread_setname_np(pthread_self(), "baton-events");
    state->run();
  });
}

FeedThread::~FeedThread() {
  {
    const locks::Lock lock(state_->mutex);
    state_->stopping = true;
  }
  state_->context.readiness.wake();
  state_->thread.join();
}

void FeedThread::open(FeedSpec spec, Slot slot) {
  auto cell = std::make_shared<StatusCell>();
  {
    const locks::Lock lock(cell->mutex);
    cell->status.holder = spec.holder;
    cell->status.position = spec.resume;
  }
  {
    const locks::Lock lock(state_->mutex);
    state_->cells[spec.holder] = cell;
  }
  state_->context.changes.note(*cell, spec.holder);
  // No caller waits for it: its failures are logged there.
  state_->post([state = state_.get(), spec = std::move(spec), slot, cell = std::move(cell)] {
    try {
      state->open(spec, slot, cell);
    } catch (const std::exception& failure) {  // no memory, most likely
      state->context.log.error("feed_failed",
                               {{"endpoint", spec.events}, {"error", failure.what()}});
    }
  });
}

void FeedThread::close(Holder holder) {
  state_->post([state = state_.get(), holder] { state->close(holder); }).get();
  const locks::Lock lock(state_->mutex);
  state_->cells.erase(holder);
}

std::vector<FeedStatus> FeedThread::statuses() const {
  std::vector<std::shared_ptr<StatusCell>> cells;
  {
    const locks::Lock lock(state_->mutex);
    cells.reserve(state_->cells.size());
    for (const auto& [holder, cell] : state_->cells) cells.push_back(cell);
  }
  std::vector<FeedStatus> statuses;
  statuses.reserve(cells.size());
  for (const auto& cell : cells) {
    const locks::Lock lock(cell->mutex);
    statuses.push_back(cell->status);
  }
  return statuses;
}

std::vector<FeedStatus> FeedThread::changed() {
  std::vector<std::shared_ptr<StatusCell>> cells;
  {
    const locks::Lock lock(state_->mutex);
    for (const Holder holder : state_->context.changes.take()) {
      const auto found = state_->cells.find(holder);
      if (found != state_->cells.end()) cells.push_back(found->second);
    }
  }
  std::vector<FeedStatus> statuses;
  statuses.reserve(cells.size());
  for (const auto& cell : cells) {
    const locks::Lock lock(cell->mutex);
    cell->noted = false;
    statuses.push_back(cell->status);
  }
  return statuses;
}

void FeedThread::while_quiet(Holder holder, const std::function<void(const FeedStatus*)>& work) {
  state_
      ->post([this, holder, &work] {
        const auto feed = state_->open_feeds.find(holder);
        if (feed == state_->open_feeds.end()) return work(nullptr);
        const FeedStatus status = feed->second.reader->status();
        work(&status);
      })
      .get();
}

std::future<void> FeedThread::State::post(std::function<void()> work) {
  Command command(std::move(work));
  auto done = command.get_future();
  {
    const locks::Lock lock(mutex);
    commands.push_back(std::move(command));
  }
  context.readiness.wake();
  return done;
}

void FeedThread::State::run() {
  // Signals are for the main thread.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  while (run_commands()) context.readiness.run_once();
  while (!open_feeds.empty()) close(open_feeds.begin()->first);
}

bool FeedThread::State::run_commands() {
  std::deque<Command> due;
  {
    const locks::Lock lock(mutex);
    if (stopping) return false;
    due.swap(commands);
  }
  for (Command& command : due) command();
  return true;
}

void FeedThread::State::open(FeedSpec spec, Slot slot, std::shared_ptr<StatusCell> cell) {
  close(spec.holder);
  const Holder holder = spec.holder;
  auto& subscriber = subscribers[spec.events];
  if (!subscriber)
    subscriber = std::make_unique<EventSubscriber>(context, spec.events,
                                                   "feed-" + std::to_string(++subscribers_made));
  auto reader = std::make_unique<FeedReader>(context, std::move(spec), slot, *cell);
  Open& feed = open_feeds[holder] = {
      .cell = std::move(cell), .reader = std::move(reader), .subscriber = subscriber.get()};
  feed.subscriber->add(*feed.reader);
}

void FeedThread::State::close(Holder holder) {
  const auto found = open_feeds.find(holder);
  if (found == open_feeds.end()) return;
  EventSubscriber* subscriber = found->second.subscriber;
  subscriber->remove(*found->second.reader);
  if (subscriber->empty()) subscribers.erase(found->second.reader->spec().events);
  open_feeds.erase(found);
}

}  // namespace baton::kvcache
