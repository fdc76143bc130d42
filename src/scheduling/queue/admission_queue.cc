// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/admission_queue.h"

#include "scheduling/policy/pace.h"
#include "scheduling/queue/queued_request.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <utility>

namespace baton::scheduling {
namespace {

using boost::asio::awaitable;

config::Queue with_a_class(config::Queue config) {
  if (config.classes.empty()) config.classes.emplace_back().name = "default";
  return config;
}

std::uint64_t uncached_tokens(const QueueRequest& request) {
  return request.prompt_tokens - std::min(request.prompt_tokens, request.cached_tokens);
}

Work work_of(const QueueRequest& request) {
  return {.tokens = static_cast<double>(std::max<std::uint64_t>(1, uncached_tokens(request))),
          .seconds = request.compute_seconds};
}

// A request with its own maximum wait bypasses the bound, and strict priority goes first.
bool goes_its_own_way(const QueueRequest& request) {
  return request.max_wait || request.strict_priority > 0;
}

}  // namespace

// An offer on its way to a queued request. If the executor ends first, the next one gets it.
class AdmissionQueue::Offer {
 public:
  Offer(std::shared_ptr<AdmissionQueue> queue, std::shared_ptr<QueuedRequest> pending)
      : queue_(std::move(queue)), pending_(std::move(pending)) {}
  Offer(Offer&&) = default;
  Offer& operator=(Offer&&) = delete;
  ~Offer() {
    if (queue_) queue_->answer(*pending_, Answer::Gone, {});
  }

  void operator()() {
    const auto queue = std::move(queue_);
    const Answer answer = pending_->try_now(queue->config_.classes[pending_->policy_class],
                                            pending_->fail_fast ? Chance::Last : Chance::Usual);
    queue->answer(*pending_, answer, pending_->awaits);
  }

 private:
  std::shared_ptr<AdmissionQueue> queue_;
  std::shared_ptr<QueuedRequest> pending_;
};

// A queued request's place in the queue, for as long as its coroutine waits.
class AdmissionQueue::Place {
 public:
  Place(AdmissionQueue& queue, QueuedRequest& pending) : queue_(queue), pending_(pending) {}
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    pending_.leave();
    queue_.abort_all(pending_);
  }

 private:
  AdmissionQueue& queue_;
  QueuedRequest& pending_;
};

AdmissionQueue::AdmissionQueue(config::Queue config, boost::asio::any_io_executor home,
                               QueueMetrics metrics, Now now)
    : config_(with_a_class(std::move(config))),
      classes_(config_),
      home_(std::move(home)),
      metrics_(std::move(metrics)),
      now_(std::move(now)),
      waiting_of_class_(config_.classes.size()),
      queue_(config_, now_()),
      demand_(config_, now_()) {}

AdmissionQueue::~AdmissionQueue() = default;

awaitable<Result<Admitted>> AdmissionQueue::enter(QueueRequest request, Attempt attempt,
                                                  Cancellation& cancellation, Admitted* seen) {
  const auto alive = shared_from_this();
  if (cancellation.requested()) co_return fail(cancellation.reason());
  const std::size_t index = classes_.resolve(request.policy_class, uncached_tokens(request));
  // Any speed will do, as long as it is the same for all: it also measures the served work.
  if (request.compute_seconds <= 0)
    request.compute_seconds = kUnmeasuredSpeed.seconds_per_token * work_of(request).tokens;
  const config::QueueClass& its_class = config_.classes[index];
  Admitted admitted{.policy_class = its_class.name};
  if (seen != nullptr) *seen = admitted;
  const auto at_most =
      request.max_wait.value_or(MaxQueueWait::configured(config_.patience)).at_most;
  const bool fail_fast = at_most && at_most->count() == 0;
  const auto pending = std::make_shared<QueuedRequest>(co_await boost::asio::this_coro::executor,
                                                       attempt, index, fail_fast);
  pending->constrained = request.constrained;
  pending->behind = request.behind;

  std::optional<std::uint64_t> tried_at;  // changes_ at the last try
  const auto try_now = [&](Chance chance) {
    tried_at = changes_.load();
    pending->try_now(its_class, chance);
  };
  // If no request waits for workers, those that wait for each other have no precedence.
  const auto none_waiting = [&] { return waiting_of_class_[index].load() == 0; };
  const Clock::time_point arrival = now_();
  if (none_waiting() || !its_class.queues()) {
    try_now(fail_fast ? Chance::Last : Chance::Usual);
  } else if (!fail_fast && request.follows) {
    const std::uint64_t changes = changes_.load();
    if (auto leader = request.follows()) {
      tried_at = changes;
      pending->wait(std::move(*leader));
    }
  }
  auto outcome = pending->outcome();
  if (!outcome) {
    auto queued = queue_up(pending, request, tried_at);
    // There is no room to wait for another: it computes for itself. Nor to wait for a worker: but
    // one of its own may have time.
    const bool alone = pending->follows && (none_waiting() || !its_class.queues());
    if (!queued && (alone || (request.constrained && !tried_at))) {
      pending->follows = false;
      try_now(Chance::Last);
      outcome = pending->outcome();
      if (!outcome && alone) queued = queue_up(pending, request, tried_at);
    }
    if (seen != nullptr) seen->ahead = pending->ahead;
    if (!outcome && !queued) co_return fail(told(std::move(queued.error())));
  }
  if (outcome) {
    if (!*outcome) co_return fail(outcome->error());
    if (its_class.queues()) metrics_.classes[index].seconds->observe(0);
    co_return admitted;
  }

  const Place place(*this, *pending);
  const bool until_told = !at_most || fail_fast;
  const auto deadline = until_told ? Clock::time_point::max() : arrival + *at_most;
  const bool may_be_late = !request.due || pending->behind || goes_its_own_way(request);
  co_await pending->waiter.sleep(may_be_late ? deadline : std::min(deadline, request.due->by),
                                 cancellation);
  // Its turn did not come in time. A follower, though, waits for work that is already running.
  if (!may_be_late && !pending->settled() && !cancellation.requested() && now_() < deadline) {
    if (!pending->follows && !request.due->queue_late) {
      admitted.waited = now_() - arrival;
      admitted.ahead = pending->ahead;
      if (seen != nullptr) *seen = admitted;
      const locks::Lock lock(mutex_);
      co_return fail(told(denial_of(its_class, *request.due, Clock::duration(0), now_())));
    }
    if (!pending->follows) put_behind(*pending, now_());
    co_await pending->waiter.sleep(deadline, cancellation);
  }
  const Clock::time_point now = now_();
  admitted.waited = now - arrival;
  admitted.ahead = pending->ahead;
  if (seen != nullptr) *seen = admitted;
  outcome = pending->outcome();
  if (!outcome && cancellation.requested()) co_return fail(cancellation.reason());
  // It would rather have waited for another, but need not.
  if (!outcome && pending->follows && (none_waiting() || !its_class.queues())) {
    pending->try_now(its_class, Chance::Last);
    outcome = pending->outcome();
  }
  if (!outcome) {
    const locks::Lock lock(mutex_);
    co_return fail(
        told(timed_out(its_class.name, queue_.totals(index).requests, demand_.retry_after(now))));
  }
  if (!*outcome) co_return fail(outcome->error());
  metrics_.classes[index].seconds->observe(std::chrono::duration<double>(admitted.waited).count());
  co_return admitted;
}

std::expected<void, Denial> AdmissionQueue::queue_up(const std::shared_ptr<QueuedRequest>& pending,
                                                     const QueueRequest& request,
                                                     std::optional<std::uint64_t> tried_at) {
  const Clock::time_point now = now_();
  const std::size_t index = pending->policy_class;
  const std::string& name = config_.classes[index].name;
  const bool may_wait = config_.classes[index].queues() || pending->follows;
  const locks::Lock lock(mutex_);
  pending->ahead = queue_.totals(index).requests;
  if (!may_wait || (pending->fail_fast && tried_at))
    return std::unexpected(busy(name, demand_.retry_after(now)));
  Entry entry{.strict_priority = request.strict_priority,
              .priority_jump = request.priority_jump,
              .tenant = request.tenant,
              .prompt_tokens = request.prompt_tokens,
              .cached_tokens = request.cached_tokens,
              .awaits = pending->awaits.what.empty() ? request.awaits : pending->awaits,
              .arrival = now,
              .compute_seconds = request.compute_seconds,
              .until = pending->until,
              .behind = pending->behind};
  put_in_time(*pending, request, entry);
  if (auto denial = too_long(*pending, request, entry)) return std::unexpected(*std::move(denial));
  if (const auto wait = foreseen_late(*pending, request, entry)) {
    if (!request.due->queue_late)
      return std::unexpected(denial_of(config_.classes[index], *request.due, *wait, now));
    pending->behind = entry.behind = true;
  }
  const auto ticket = queue_.add(index, entry, request.workers, now);
  if (!ticket) return std::unexpected(full(ticket.error(), demand_.retry_after(now)));
  pending->ticket = *ticket;
  pending->weight = {.requests = 1,
                     .prompt_tokens = request.prompt_tokens,
                     .cached_tokens = request.cached_tokens,
                     .uncached_tokens = entry.uncached_tokens()};
  pending->work = work_of(request);
  pending_.emplace(*ticket, pending);
  metrics_.came(index, pending->weight);
  wants_worker(*pending, !pending->follows, now);
  waiting_.fetch_add(1);
  // From here on changed() sees the waiting request; earlier changes are checked here.
  const std::uint64_t changes = changes_.load();
  const bool known_busy =
      tried_at ? *tried_at == changes : queue_.passed(*ticket) && round_changes_ == changes;
  if (pending->fail_fast && known_busy) {
    forget(*pending);
    return std::unexpected(busy(name, demand_.retry_after(now)));
  }
  if (pending->fail_fast) fail_fast_.push_back({*ticket, round_});
  if (!known_busy) wake(now);
  if (!std::exchange(rechecking_, true)) recheck_later();
  return {};
}

std::optional<Denial> AdmissionQueue::too_long(const QueuedRequest& pending,
                                               const QueueRequest& request, const Entry& entry) {
  if (pending.follows || pending.fail_fast || pending.behind || goes_its_own_way(request))
    return std::nullopt;
  const std::size_t index = pending.policy_class;
  const config::QueueClass& its_class = config_.classes[index];
  // In a shortest-first queue, `before` already excludes the requests that it jumps over.
  const bool jumps = its_class.order != config::QueueOrder::Shortest;
  const auto wait = demand_.too_long({.policy_class = index,
                                      .before = queue_.before(index, entry),
                                      .priority_jump = jumps ? request.priority_jump : 0,
                                      .compute_seconds = request.compute_seconds},
                                     entry.arrival);
  if (!wait) return std::nullopt;
  return scheduling::too_long(its_class.name, wait->seconds, wait->limit,
                              demand_.retry_after(entry.arrival));
}

void AdmissionQueue::put_in_time(const QueuedRequest& pending, const QueueRequest& request,
                                 Entry& entry) const {
  if (pending.fail_fast || pending.behind || goes_its_own_way(request)) return;
  if (request.due && !pending.follows) entry.by = request.due->foreseen_by;
  const std::size_t index = pending.policy_class;
  const auto forecast = [&](const Work& before) REQUIRES(mutex_) {
    return demand_.foreseen({.policy_class = index, .before = before}, request.workers,
                            entry.arrival);
  };
  entry.delay = queue_.delay(index, entry, entry.arrival, forecast);
}

std::optional<Clock::duration> AdmissionQueue::foreseen_late(const QueuedRequest& pending,
                                                             const QueueRequest& request,
                                                             const Entry& entry) const {
  if (!request.due || pending.follows || pending.fail_fast || pending.behind ||
      goes_its_own_way(request))
    return std::nullopt;
  const std::size_t index = pending.policy_class;
  const double seconds = demand_.foreseen({.policy_class = index,
                                           .before = queue_.before(index, entry),
                                           .priority_jump = request.priority_jump,
                                           .compute_seconds = request.compute_seconds},
                                          request.workers, entry.arrival);
  constexpr double kLongest = 1e6;  // the longest wait that fits in nanoseconds
  const auto wait = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(std::min(seconds, kLongest)));
  return entry.arrival + wait <= request.due->foreseen_by ? std::nullopt : std::optional(wait);
}

Denial AdmissionQueue::denial_of(const config::QueueClass& its_class, const Due& due,
                                 Clock::duration wait, Clock::time_point now) const {
  const auto seconds = [](Clock::duration time) {
    return std::chrono::duration<double>(time).count();
  };
  return too_late(its_class.name, seconds(now - due.received + wait + due.after),
                  seconds(due.objective), demand_.retry_after(now));
}

void AdmissionQueue::put_behind(QueuedRequest& pending, Clock::time_point now) {
  const locks::Lock lock(mutex_);
  if (!pending_.contains(pending.ticket)) return;
  pending.behind = true;
  queue_.put_behind(pending.ticket, now);
  // It no longer keeps a worker from others.
  if (std::exchange(pending.demands, false))
    demand_.remove(pending.policy_class, pending.work, now);
}

void AdmissionQueue::wants_worker(QueuedRequest& pending, bool wants, Clock::time_point now) {
  if (std::exchange(pending.wants_worker, wants) == wants) return;
  if (!wants) {
    if (std::exchange(pending.demands, false))
      demand_.remove(pending.policy_class, pending.work, now);
    waiting_of_class_[pending.policy_class].fetch_sub(1);
    return;
  }
  waiting_of_class_[pending.policy_class].fetch_add(1);
  // Others do not wait for a worker that only this request may have. It also need not compute what
  // another has computed for it, but that amount is unknown before the next try.
  if (pending.constrained || pending.has_followed || pending.behind) return;
  pending.demands = true;
  demand_.add(pending.policy_class, pending.work, now);
}

void AdmissionQueue::changed() {
  changes_.fetch_add(1);
  if (waiting_.load() == 0) return;
  const locks::Lock lock(mutex_);
  wake(now_());
}

void AdmissionQueue::wake(Clock::time_point now) {
  if (offering_) {
    again_ = true;
    return;
  }
  begin_round(now);
  offer_next(now);
}

void AdmissionQueue::begin_round(Clock::time_point now) {
  again_ = false;
  ++round_;
  round_changes_ = changes_.load();
  queue_.begin_round(now);
}

void AdmissionQueue::offer_next(Clock::time_point now) {
  offering_ = false;
  while (true) {
    if (const auto ticket = queue_.next(now)) {
      const std::shared_ptr<QueuedRequest>& pending = pending_.at(*ticket);
      offering_ = true;
      // Under the lock: the request cannot leave, nor its executor end, before this is posted.
      boost::asio::post(pending->waiter.home(), Offer(shared_from_this(), pending));
      return;
    }
    refuse_fail_fast(now);
    if (!again_) return;
    begin_round(now);
  }
}

void AdmissionQueue::refuse_fail_fast(Clock::time_point now) {
  std::vector<FailFast> kept;
  for (const FailFast& fail_fast : std::exchange(fail_fast_, {})) {
    const auto found = pending_.find(fail_fast.ticket);
    if (found == pending_.end()) continue;
    if (fail_fast.since == round_) {  // this round may not have seen it
      kept.push_back(fail_fast);
      continue;
    }
    const std::shared_ptr<QueuedRequest> pending = found->second;
    const std::string& name = config_.classes[pending->policy_class].name;
    boost::asio::post(pending->waiter.home(),
                      [pending, why = told(busy(name, demand_.retry_after(now)))] {
                        pending->settle(fail(why));
                      });
    forget(*pending);
  }
  fail_fast_ = std::move(kept);
}

void AdmissionQueue::answer(QueuedRequest& pending, Answer answer, const WaitKey& awaits) {
  const Clock::time_point now = now_();
  const locks::Lock lock(mutex_);
  switch (answer) {
    case Answer::Taken:
      queue_.taken(pending.ticket, now);
      if (pending.demands) demand_.served(pending.work, now);
      forget(pending);
      break;
    case Answer::Busy:
      queue_.pass(pending.ticket, awaits, now, pending.until);
      if (pending_.contains(pending.ticket)) wants_worker(pending, !pending.follows, now);
      break;
    case Answer::Gone:
      forget(pending);
      break;
  }
  offer_next(now);
}

void AdmissionQueue::abort_all(QueuedRequest& pending) {
  const locks::Lock lock(mutex_);
  forget(pending);
}

void AdmissionQueue::forget(QueuedRequest& pending) {
  if (pending_.erase(pending.ticket) == 0) return;
  if (pending_.empty()) pending_ = decltype(pending_)();  // clear() would keep its buckets
  queue_.remove(pending.ticket, now_());
  metrics_.left(pending.policy_class, pending.weight);
  wants_worker(pending, false, now_());
  waiting_.fetch_sub(1);
}

Totals AdmissionQueue::totals(std::size_t policy_class) const {
  const locks::Lock lock(mutex_);
  return queue_.totals(policy_class);
}

Error AdmissionQueue::told(Denial denial) const {
  metrics_.turned_away(denial.why);
  return std::move(denial.error);
}

void AdmissionQueue::recheck_later() {
  boost::asio::post(home_, [weak = weak_from_this()] {
    const auto queue = weak.lock();
    if (!queue) return;
    const auto timer = std::make_shared<boost::asio::steady_timer>(queue->home_, kRecheck);
    timer->async_wait([weak, timer](boost::system::error_code error) {
      if (const auto still = weak.lock(); still && !error) still->recheck();
    });
  });
}

void AdmissionQueue::recheck() {
  const locks::Lock lock(mutex_);
  rechecking_ = !pending_.empty();
  if (!rechecking_) return;
  wake(now_());
  recheck_later();
}

}  // namespace baton::scheduling
