// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "admission/gate.h"

#include "admission/waiter.h"
#include "wire/json_object.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

namespace baton::admission {
namespace {

using boost::asio::awaitable;

config::Queue with_a_class(config::Queue config) {
  if (config.classes.empty()) config.classes.emplace_back().name = "default";
  return config;
}

}  // namespace

// One who waits, at home on its own executor; `ticket`, `policy_class` and `weight` do not change
// once it is in the queue.
class Gate::Guest {
 public:
  Guest(boost::asio::any_io_executor home, const Attempt& attempt, std::size_t policy_class,
        bool hasty)
      : waiter(std::move(home)), policy_class(policy_class), hasty(hasty), attempt_(&attempt) {}

  // Home. What came of its turn.
  Answer try_now(const config::QueueClass& its_class, Chance chance) {
    if (!attempt_ || outcome_ || thrown_) return Answer::Gone;
    try {
      Result<Tried> tried = (*attempt_)(its_class, chance);
      if (tried && tried->what != Attempted::Taken) {
        follows = tried->what == Attempted::Follows;
        awaits = std::move(tried->awaits);
        return Answer::Busy;
      }
      settle(std::move(tried));
    } catch (...) {
      thrown_ = std::current_exception();
      waiter.ring();
    }
    return outcome_ && *outcome_ ? Answer::Taken : Answer::Gone;
  }
  // Home.
  void settle(Result<Tried> outcome) {
    if (!outcome_) outcome_ = std::move(outcome);
    waiter.ring();
  }
  // Home. What it asked for goes with its coroutine.
  void leave() { attempt_ = nullptr; }
  std::optional<Result<Tried>> outcome() {
    if (thrown_) std::rethrow_exception(thrown_);
    return std::move(outcome_);
  }

  Waiter waiter;
  const std::size_t policy_class;
  const bool hasty;      // it wants a try, but not to wait
  bool follows = false;  // home: it waits for another request
  Awaited awaits;        // home: what the last try found it to wait for
  Ticket ticket = 0;
  Totals weight;
  std::size_t ahead = 0;

 private:
  const Attempt* attempt_;
  std::optional<Result<Tried>> outcome_;
  std::exception_ptr thrown_;
};

// Its turn, on the way to a guest. Should the executor end before it arrives, the next one gets it.
class Gate::Offer {
 public:
  Offer(std::shared_ptr<Gate> gate, std::shared_ptr<Guest> guest)
      : gate_(std::move(gate)), guest_(std::move(guest)) {}
  Offer(Offer&&) = default;
  Offer& operator=(Offer&&) = delete;
  ~Offer() {
    if (gate_) gate_->answer(*guest_, Answer::Gone, {});
  }

  void operator()() {
    const auto gate = std::move(gate_);
    const Answer answer = guest_->try_now(gate->config_.classes[guest_->policy_class],
                                          guest_->hasty ? Chance::Last : Chance::Usual);
    gate->answer(*guest_, answer, guest_->awaits);
  }

 private:
  std::shared_ptr<Gate> gate_;
  std::shared_ptr<Guest> guest_;
};

// A guest's place in the queue, for as long as its coroutine waits.
class Gate::Place {
 public:
  Place(Gate& gate, Guest& guest) : gate_(gate), guest_(guest) {}
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    guest_.leave();
    gate_.let_go(guest_);
  }

 private:
  Gate& gate_;
  Guest& guest_;
};

Gate::Gate(config::Queue config, boost::asio::any_io_executor home, GateMetrics metrics)
    : config_(with_a_class(std::move(config))),
      classes_(config_),
      home_(std::move(home)),
      metrics_(std::move(metrics)),
      waiting_of_class_(config_.classes.size()),
      queue_(config_, Clock::now()),
      drain_(Clock::now()) {}

Gate::~Gate() = default;

awaitable<Result<Admitted>> Gate::enter(Request request, Attempt attempt,
                                        Cancellation& cancellation) {
  const auto alive = shared_from_this();
  if (cancellation.requested()) co_return fail(cancellation.reason());
  const std::uint64_t uncached =
      request.prompt_tokens - std::min(request.prompt_tokens, request.cached_tokens);
  const std::size_t index = classes_.resolve(request.policy_class, uncached);
  const config::QueueClass& its_class = config_.classes[index];
  Admitted admitted{.policy_class = its_class.name};
  if (!request.patience) request.patience = Patience::configured(config_.patience);
  const auto& at_most = request.patience->at_most;
  const bool hasty = at_most && at_most->count() == 0;
  const auto guest =
      std::make_shared<Guest>(co_await boost::asio::this_coro::executor, attempt, index, hasty);

  std::optional<std::uint64_t> tried_at;  // what had changed by then
  const auto try_now = [&](Chance chance) {
    tried_at = changes_.load();
    return guest->try_now(its_class, chance);
  };
  const Clock::time_point arrival = Clock::now();
  // Where nobody waits for workers those who wait, for each other, have no better right.
  if (waiting_of_class_[index].load() == 0 || !its_class.queues()) {
    try_now(hasty ? Chance::Last : Chance::Usual);
  } else if (!hasty && request.follows) {
    const std::uint64_t changes = changes_.load();
    if (auto leader = request.follows()) {
      tried_at = changes;
      guest->follows = true;
      guest->awaits = std::move(*leader);
    }
  }
  auto outcome = guest->outcome();
  if (!outcome) {
    auto queued = queue_up(guest, request, tried_at);
    if (!queued && guest->follows) {
      // There is no room to wait for another: it computes for itself.
      guest->follows = false;
      try_now(Chance::Last);
      outcome = guest->outcome();
      if (!outcome) queued = queue_up(guest, request, tried_at);
    }
    if (!outcome && !queued) co_return fail(told(std::move(queued.error())));
  }
  if (outcome) {
    if (!*outcome) co_return fail(outcome->error());
    if (its_class.queues()) metrics_.classes[index].seconds->observe(0);
    co_return admitted;
  }

  const Place place(*this, *guest);
  const bool until_told = !at_most || hasty;
  co_await guest->waiter.sleep(until_told ? Clock::time_point::max() : arrival + *at_most,
                               cancellation);
  const Clock::time_point now = Clock::now();
  outcome = guest->outcome();
  if (!outcome && cancellation.requested()) co_return fail(cancellation.reason());
  if (!outcome && guest->follows) {  // it would rather have waited, but need not
    guest->try_now(its_class, Chance::Last);
    outcome = guest->outcome();
  }
  if (!outcome) co_return fail(timed_out(index, now));
  if (!*outcome) co_return fail(outcome->error());
  admitted.waited = now - arrival;
  admitted.ahead = guest->ahead;
  metrics_.classes[index].seconds->observe(std::chrono::duration<double>(admitted.waited).count());
  co_return admitted;
}

std::expected<void, Gate::Denial> Gate::queue_up(const std::shared_ptr<Guest>& guest,
                                                 const Request& request,
                                                 std::optional<std::uint64_t> tried_at) {
  const Clock::time_point now = Clock::now();
  const std::size_t index = guest->policy_class;
  const bool may_wait = config_.classes[index].queues() || guest->follows;
  const std::scoped_lock lock(mutex_);
  if (!may_wait || (guest->hasty && tried_at)) return std::unexpected(busy(index, now));
  guest->ahead = queue_.totals(index).requests;
  const Entry entry{.strict_priority = request.strict_priority,
                    .priority_jump = request.priority_jump,
                    .tenant = request.tenant,
                    .prompt_tokens = request.prompt_tokens,
                    .cached_tokens = request.cached_tokens,
                    .awaits = guest->awaits.what.empty() ? request.awaits : guest->awaits,
                    .arrival = now,
                    .compute_seconds = request.compute_seconds};
  const auto ticket = queue_.add(index, entry, request.workers, now);
  if (!ticket) return std::unexpected(refused(ticket.error(), now));
  if (guests_.empty()) drain_.begin(now);
  guest->ticket = *ticket;
  guest->weight = {.requests = 1,
                   .prompt_tokens = request.prompt_tokens,
                   .cached_tokens = request.cached_tokens,
                   .uncached_tokens = entry.uncached_tokens()};
  guests_.emplace(*ticket, guest);
  metrics_.came(index, guest->weight);
  waiting_of_class_[index].fetch_add(1);
  waiting_.fetch_add(1);
  // From here on changed() sees that somebody waits; what it was told before is looked at here.
  const std::uint64_t changes = changes_.load();
  const bool known_busy =
      tried_at ? *tried_at == changes : queue_.passed(*ticket) && round_changes_ == changes;
  if (guest->hasty && known_busy) {
    forget(*guest);
    return std::unexpected(busy(index, now));
  }
  if (guest->hasty) hasty_.push_back({*ticket, round_});
  if (!known_busy) wake(now);
  if (!std::exchange(rechecking_, true)) recheck_later();
  return {};
}

void Gate::changed() {
  changes_.fetch_add(1);
  if (waiting_.load() == 0) return;
  const std::scoped_lock lock(mutex_);
  wake(Clock::now());
}

void Gate::wake(Clock::time_point now) {
  if (offering_) {
    again_ = true;
    return;
  }
  begin_round(now);
  offer_next(now);
}

void Gate::begin_round(Clock::time_point now) {
  again_ = false;
  ++round_;
  round_changes_ = changes_.load();
  queue_.begin_round(now);
}

void Gate::offer_next(Clock::time_point now) {
  offering_ = false;
  while (true) {
    if (const auto ticket = queue_.next(now)) {
      const std::shared_ptr<Guest>& guest = guests_.at(*ticket);
      offering_ = true;
      // Under the lock: a guest cannot leave, nor its executor end, before this is on its way.
      boost::asio::post(guest->waiter.home(), Offer(shared_from_this(), guest));
      return;
    }
    turn_away_the_hasty(now);
    if (!again_) return;
    begin_round(now);
  }
}

void Gate::turn_away_the_hasty(Clock::time_point now) {
  std::vector<Hasty> kept;
  for (const Hasty& hasty : std::exchange(hasty_, {})) {
    const auto found = guests_.find(hasty.ticket);
    if (found == guests_.end()) continue;
    if (hasty.since == round_) {  // this round may not have seen it
      kept.push_back(hasty);
      continue;
    }
    const std::shared_ptr<Guest> guest = found->second;
    boost::asio::post(guest->waiter.home(), [guest, why = told(busy(guest->policy_class, now))] {
      guest->settle(fail(why));
    });
    forget(*guest);
  }
  hasty_ = std::move(kept);
}

void Gate::answer(Guest& guest, Answer answer, const Awaited& awaits) {
  const Clock::time_point now = Clock::now();
  const std::scoped_lock lock(mutex_);
  switch (answer) {
    case Answer::Taken:
      queue_.taken(guest.ticket, now);
      drain_.served(guest.weight.uncached_tokens, now);
      forget(guest);
      break;
    case Answer::Busy:
      queue_.pass(guest.ticket, awaits, now);
      break;
    case Answer::Gone:
      forget(guest);
      break;
  }
  offer_next(now);
}

void Gate::let_go(Guest& guest) {
  const std::scoped_lock lock(mutex_);
  forget(guest);
}

void Gate::forget(Guest& guest) {
  if (guests_.erase(guest.ticket) == 0) return;
  if (guests_.empty()) guests_ = decltype(guests_)();  // clear() would keep its buckets
  queue_.remove(guest.ticket, Clock::now());
  metrics_.left(guest.policy_class, guest.weight);
  waiting_of_class_[guest.policy_class].fetch_sub(1);
  waiting_.fetch_sub(1);
}

Totals Gate::totals(std::size_t policy_class) const {
  const std::scoped_lock lock(mutex_);
  return queue_.totals(policy_class);
}

std::chrono::seconds Gate::come_again_in(Clock::time_point now) const {
  std::uint64_t tokens = 0;
  for (std::size_t i = 0; i < config_.classes.size(); ++i)
    tokens += queue_.totals(i).uncached_tokens;
  return drain_.time_for(tokens, now);
}

Error Gate::told(Denial denial) const {
  metrics_.turned_away(denial.why);
  return std::move(denial.error);
}

Gate::Denial Gate::refused(const Refusal& refusal, Clock::time_point now) const {
  const std::string_view kind = to_string(refusal.kind);
  return {static_cast<Turned>(refusal.kind),
          Error(Errc::QueueFull,
                fmt::format("every worker for this request is busy, and the queue of class \"{}\" "
                            "is full ({} of {} {} wait); try again later",
                            refusal.policy_class, refusal.current, refusal.limit, kind))
              .with_retry_after(come_again_in(now))
              .with_figures(fmt::format(
                  R"({{"policy_class":{},"limit_kind":"{}","current":{},"limit":{}}})",
                  wire::json_quote(refusal.policy_class), kind, refusal.current, refusal.limit))};
}

Gate::Denial Gate::busy(std::size_t policy_class, Clock::time_point now) const {
  return {Turned::Busy,
          Error(Errc::WorkersBusy,
                fmt::format("every worker for this request is busy, and it may not wait (class "
                            "\"{}\"); try again later, or let it wait",
                            config_.classes[policy_class].name))
              .with_retry_after(come_again_in(now))};
}

Error Gate::timed_out(std::size_t policy_class, Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  metrics_.turned_away(Turned::Timeout);
  return Error(
             Errc::QueueTimeout,
             fmt::format("no worker had time for this request before its patience was over; "
                         "{} requests of class \"{}\" wait; try again later",
                         queue_.totals(policy_class).requests, config_.classes[policy_class].name))
      .with_retry_after(come_again_in(now));
}

void Gate::recheck_later() {
  boost::asio::post(home_, [weak = weak_from_this()] {
    const auto gate = weak.lock();
    if (!gate) return;
    const auto timer = std::make_shared<boost::asio::steady_timer>(gate->home_, kRecheck);
    timer->async_wait([weak, timer](boost::system::error_code error) {
      if (const auto still = weak.lock(); still && !error) still->recheck();
    });
  });
}

void Gate::recheck() {
  const std::scoped_lock lock(mutex_);
  rechecking_ = !guests_.empty();
  if (!rechecking_) return;
  wake(Clock::now());
  recheck_later();
}

}  // namespace baton::admission
