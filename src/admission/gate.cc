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
  Guest(boost::asio::any_io_executor home, const Attempt& attempt, std::size_t policy_class)
      : waiter(std::move(home)), policy_class(policy_class), attempt_(&attempt) {}

  // Home. What came of its turn.
  Answer try_now(const config::QueueClass& its_class) {
    if (!attempt_ || outcome_ || thrown_) return Answer::Gone;
    try {
      Result<Attempted> tried = (*attempt_)(its_class);
      if (tried && *tried == Attempted::Busy) return Answer::Busy;
      settle(std::move(tried));
    } catch (...) {
      thrown_ = std::current_exception();
      waiter.ring();
    }
    return outcome_ && *outcome_ ? Answer::Taken : Answer::Gone;
  }
  // Home.
  void settle(Result<Attempted> outcome) {
    if (!outcome_) outcome_ = std::move(outcome);
    waiter.ring();
  }
  // Home. What it asked for goes with its coroutine.
  void leave() { attempt_ = nullptr; }
  std::optional<Result<Attempted>> outcome() {
    if (thrown_) std::rethrow_exception(thrown_);
    return std::move(outcome_);
  }

  Waiter waiter;
  const std::size_t policy_class;
  Ticket ticket = 0;
  Totals weight;
  std::size_t ahead = 0;

 private:
  const Attempt* attempt_;
  std::optional<Result<Attempted>> outcome_;
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
    if (gate_) gate_->answer(*guest_, Answer::Gone);
  }

  void operator()() {
    const auto gate = std::move(gate_);
    gate->answer(*guest_, guest_->try_now(gate->config_.classes[guest_->policy_class]));
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

  std::optional<std::uint64_t> tried_at;  // what had changed by then
  if (waiting_of_class_[index].load() == 0) {
    tried_at = changes_.load();
    const Result<Attempted> tried = attempt(its_class);
    if (!tried) co_return fail(tried.error());
    if (*tried == Attempted::Taken) {
      if (its_class.queues()) metrics_.classes[index].seconds->observe(0);
      co_return admitted;
    }
  }

  const Clock::time_point arrival = Clock::now();
  if (!request.patience) request.patience = Patience::configured(config_.patience);
  const auto guest =
      std::make_shared<Guest>(co_await boost::asio::this_coro::executor, attempt, index);
  if (const auto queued = queue_up(guest, request, tried_at); !queued)
    co_return fail(queued.error());
  const Place place(*this, *guest);
  const auto& at_most = request.patience->at_most;
  const bool until_told = !at_most || at_most->count() == 0;
  co_await guest->waiter.sleep(until_told ? Clock::time_point::max() : arrival + *at_most,
                               cancellation);

  const Clock::time_point now = Clock::now();
  if (const auto outcome = guest->outcome()) {
    if (!*outcome) co_return fail(outcome->error());
    admitted.waited = now - arrival;
    admitted.ahead = guest->ahead;
    metrics_.classes[index].seconds->observe(
        std::chrono::duration<double>(admitted.waited).count());
    co_return admitted;
  }
  if (cancellation.requested()) co_return fail(cancellation.reason());
  co_return fail(timed_out(index, now));
}

Result<void> Gate::queue_up(const std::shared_ptr<Guest>& guest, const Request& request,
                            std::optional<std::uint64_t> tried_at) {
  const Clock::time_point now = Clock::now();
  const std::size_t index = guest->policy_class;
  const bool hasty = request.patience->at_most && request.patience->at_most->count() == 0;
  const std::scoped_lock lock(mutex_);
  if (!config_.classes[index].queues() || (hasty && tried_at)) return fail(busy(index, now));
  guest->ahead = queue_.totals(index).requests;
  const Entry entry{.strict_priority = request.strict_priority,
                    .priority_jump = request.priority_jump,
                    .tenant = request.tenant,
                    .prompt_tokens = request.prompt_tokens,
                    .cached_tokens = request.cached_tokens,
                    .lane = request.lane,
                    .arrival = now,
                    .compute_seconds = request.compute_seconds};
  const auto ticket = queue_.add(index, entry, request.workers, now);
  if (!ticket) return fail(refused(ticket.error(), now));
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
  if (hasty && known_busy) {
    forget(*guest);
    return fail(busy(index, now));
  }
  if (hasty) hasty_.push_back({*ticket, round_});
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
    boost::asio::post(guest->waiter.home(),
                      [guest, why = busy(guest->policy_class, now)] { guest->settle(fail(why)); });
    forget(*guest);
  }
  hasty_ = std::move(kept);
}

void Gate::answer(Guest& guest, Answer answer) {
  const Clock::time_point now = Clock::now();
  const std::scoped_lock lock(mutex_);
  switch (answer) {
    case Answer::Taken:
      queue_.taken(guest.ticket, now);
      drain_.served(guest.weight.uncached_tokens, now);
      forget(guest);
      break;
    case Answer::Busy:
      queue_.pass(guest.ticket, now);
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

Error Gate::refused(const Refusal& refusal, Clock::time_point now) {
  metrics_.turned_away(static_cast<Turned>(refusal.kind));
  const std::string_view kind = to_string(refusal.kind);
  return Error(
             Errc::QueueFull,
             fmt::format("every worker for this request is busy, and the queue of class \"{}\" is "
                         "full ({} of {} {} wait); try again later",
                         refusal.policy_class, refusal.current, refusal.limit, kind))
      .with_retry_after(come_again_in(now))
      .with_figures(fmt::format(
          R"({{"policy_class":{},"limit_kind":"{}","current":{},"limit":{}}})",
          wire::json_quote(refusal.policy_class), kind, refusal.current, refusal.limit));
}

Error Gate::busy(std::size_t policy_class, Clock::time_point now) {
  metrics_.turned_away(Turned::Busy);
  return Error(Errc::WorkersBusy,
               fmt::format("every worker for this request is busy, and it may not wait (class "
                           "\"{}\"); try again later, or let it wait",
                           config_.classes[policy_class].name))
      .with_retry_after(come_again_in(now));
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
