// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/session.h"

#include "net/await.h"

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace baton::handoff {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPrefillWait{2'000};
// vLLM's default: a prefill worker keeps unfetched blocks for so long.
constexpr std::chrono::milliseconds kPushLease{30'000};

}  // namespace

HandoffSession::HandoffSession(HandoffTools& tools, HandoffRequest request, RequestTrace& trace,
                               Cancellation& cancellation)
    : context_(tools, std::move(request), trace, *this),
      planner_(context_, prefill_, decode_, cancellation) {
  listener_.emplace(cancellation, [this, &cancellation] {
    context_.gone = cancellation.reason();
    dispatch({Event::ClientGone});
  });
}

void HandoffSession::dispatch(const Input& input) {
  for (const Action action : context_.machine.on(input)) perform(action);
}

void HandoffSession::perform(Action action) {
  switch (action) {
    case Action::DropPrefill:
      return prefill_.drop();
    case Action::DropDecode:
      decode_.drop();
      return wake();
    case Action::SendRelease:
      return releases_.release();
    case Action::StartGrace:
      return start_grace();
    default:
      todo_.push_back(action);
      wake();
  }
}

// A decode worker that has not come to a push yet would not take the blocks after it was closed.
void HandoffSession::start_grace() {
  const Attempt& attempt = context_.attempt;
  const bool pushes = attempt.mode &&
                      rules_of(*attempt.mode).when_abandoned == WhenAbandoned::AwaitPrefill &&
                      !attempt.outcome->handoff.empty();
  const auto grace = context_.tools.options.grace;
  grace_ = std::make_unique<net::Deadline>(context_.tools.pool.deadlines(),
                                           [this] { dispatch({Event::GraceOver}); });
  grace_->arm(pushes ? std::max(grace, kPushLease) : grace);
}

awaitable<Result<void>> HandoffSession::begin() {
  for (const Action action : context_.machine.begin()) perform(action);
  return proceed();
}

awaitable<Result<void>> HandoffSession::proceed() {
  while (true) {
    if (todo_.empty()) {
      co_await wait_for_something_to_do();
      continue;
    }
    const Action action = todo_.front();
    todo_.erase(todo_.begin());
    switch (action) {
      case Action::ChoosePrefill:
        if (poison_.is_poison_by_now()) {
          dispatch({Event::NoPrefill});
        } else {
          co_await planner_.choose_prefill();
        }
        break;
      case Action::ChooseDecode:
        if (poison_.is_poison_by_now()) {
          dispatch({Event::NoDecode});
        } else {
          co_await planner_.choose_decode();
        }
        break;
      case Action::SendPrefill:
        prefill_.begin();
        if (rules_of(*context_.attempt.mode).order == LegOrder::Together) {
          context_.tools.tasks.spawn(
              PrefillLeg::run_beside(std::shared_ptr<PrefillLeg>(shared_from_this(), &prefill_)));
        } else {
          co_await prefill_.run();
        }
        break;
      case Action::SendDecode:
      case Action::SendAlone:
        while (awaits_prefill_request()) co_await wait_for_something_to_do();
        co_await decode_.run();
        if (context_.gone && decode_.live()) co_await discard_answer();
        break;
      case Action::Deliver:
        co_return Result<void>{};
      case Action::AnswerFromPrefill:
        clear_suspicion();
        whole_ = std::move(*prefill_.take_final_answer());
        co_return Result<void>{};
      default:
        co_return fail(error_of(context_.machine.failed_by()));
    }
  }
}

awaitable<void> HandoffSession::wait_for_something_to_do() {
  wake_timer_ =
      std::make_unique<boost::asio::steady_timer>(co_await boost::asio::this_coro::executor);
  wake_timer_->expires_at(steady_clock::time_point::max());
  co_await wake_timer_->async_wait(net::kAwait);
  wake_timer_.reset();
}

void HandoffSession::wake() {
  if (wake_timer_) wake_timer_->cancel();
}

// Legs together: a decode worker that waits for a vanished prefill may keep its own blocks for
// ever, as vLLM's does in a push.
bool HandoffSession::awaits_prefill_request() const {
  return context_.machine.handing_off() &&
         rules_of(*context_.attempt.mode).order == LegOrder::Together && !prefill_.sent() &&
         !decode_.dropped();
}

// The client has left: the answer is not read, but its beginning proves that the cache has arrived.
awaitable<void> HandoffSession::discard_answer() {
  auto piece = co_await decode_.stream().read();
  if (piece) first_token();
  decode_.failed(piece ? *context_.gone : std::move(piece.error()));
}

void HandoffSession::leave() {
  listener_.reset();
  const HandoffStateMachine& machine = context_.machine;
  if (context_.trace) {
    context_.trace->retries = machine.retries();
    context_.trace->migrations = machine.migrations();
    context_.request.counters.retries.add(machine.retries());
    context_.request.counters.migrations.add(machine.migrations());
    context_.trace = nullptr;
  }
  if (!machine.ended()) {
    if (!context_.gone) context_.gone.emplace(Errc::ClientGone, "the request was given up");
    dispatch({Event::ClientGone});
    // The client reads no further, whatever would have been better.
    decode_.abandon();
  }
  // No later event will show whether the request is the reason for an end; its blocks are released
  // all the same.
  releases_.send_held();
  decode_.end();
  if (!prefill_.running()) context_.attempt.lease = {};
}

void HandoffSession::first_token() {
  if (std::exchange(context_.attempt.streaming, true)) return;
  decode_.first_token();
  dispatch({Event::FirstToken});
  clear_suspicion();
  if (context_.gone) context_.count_waste();
  context_.free_material();
}

void HandoffSession::clear_suspicion() {
  poison_.clear();
  releases_.send_held();
}

void HandoffSession::finished() {
  decode_.finished();
  dispatch({Event::DecodeFinished});
}

awaitable<Result<void>> HandoffSession::recover(Error error, const engine::Progress* progress) {
  if (progress) context_.progress = std::make_unique<engine::Progress>(*progress);
  co_await decode_.look_for_end(error);
  decode_.failed(std::move(error));
  co_return co_await proceed();
}

awaitable<void> HandoffSession::await_prefill(bool needed) {
  const auto most = needed ? context_.tools.options.timeouts.first_byte : kPrefillWait;
  const auto until = steady_clock::now() + most;
  // The flow is woken for other events, too: for the head of the prefill's answer, which may come
  // after the whole of the decode's.
  while (prefill_.running() && steady_clock::now() < until) {
    wake_timer_ = std::make_unique<boost::asio::steady_timer>(
        co_await boost::asio::this_coro::executor, until);
    co_await wake_timer_->async_wait(net::kAwait);
    wake_timer_.reset();
  }
}

Error HandoffSession::error_of(Cause cause) const {
  if (poison_.poison() && cause != Cause::ClientGone) return *poison_.poison();
  switch (cause) {
    case Cause::ClientGone:
      return *context_.gone;
    case Cause::Prefill:
      return *prefill_.error();
    case Cause::NoPrefill:
      if (!context_.scheduler.permissions().required) return *prefill_.error();
      return Error(Errc::PrefillUnavailable,
                   fmt::format("the model \"{}\" serves with prefill workers only, and none is "
                               "active: {}",
                               context_.request.model->name(), prefill_.error()->message()))
          .with_retry_after(std::chrono::seconds(1));
    case Cause::Decode:
    case Cause::NoDecode:
    case Cause::None:
      break;
  }
  return *decode_.error();
}

}  // namespace baton::handoff
