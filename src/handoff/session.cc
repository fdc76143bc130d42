// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/session.h"

#include "engine/shared/engine_error.h"
#include "engine/vllm/vllm_dialect.h"
#include "net/await.h"
#include "wire/http_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string_view>
#include <system_error>
#include <utility>

namespace baton::handoff {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPrefillPatience{2'000};
// vLLM's default: a prefill worker keeps unfetched blocks for so long.
constexpr std::chrono::milliseconds kPushLease{30'000};

Failure judge(const Error& error) {
  return {.retryable = error.info().retryable,
          .untouched = error.code() == Errc::EngineUnreachable ||
                       error.code() == Errc::EngineOverloaded ||
                       error.code() == Errc::OutOfResources};
}

// The engine's report of the tokens it had to compute.
std::optional<std::uint64_t> computed_tokens(const std::optional<engine::Usage>& usage) {
  if (!usage || !usage->cached_tokens || usage->prompt_tokens < *usage->cached_tokens)
    return std::nullopt;
  return static_cast<std::uint64_t>(usage->prompt_tokens - *usage->cached_tokens);
}

// This process lacks something: that says nothing of the worker.
bool is_own_fault(const Error& error) {
  return error.code() == Errc::OutOfResources || error.code() == Errc::MemoryExhausted;
}

Error given_up() { return Error(Errc::EngineFailed, "the leg was given up"); }

// The call keeps its worker, also after the session and the fleet have released it.
awaitable<void> abort_leg(http_client::UpstreamPool& pool,
                          std::shared_ptr<const fleet::Worker> worker, engine::LegName name,
                          std::string authorization) {
  const http_client::Target target{worker->id(), worker->spec().endpoint};
  co_await engine::abort_request(pool, target, name, std::move(authorization));
}

// A leg beside the client's flow keeps the session alive until it has ended. The flow waits for it,
// so it is notified also if the leg throws; the task group reports the exception.
awaitable<void> beside(std::shared_ptr<HandoffSession> run,
                       awaitable<void> (HandoffSession::*leg)(), void (HandoffSession::*threw)()) {
  std::exception_ptr thrown;
  try {
    co_await (run.get()->*leg)();
  } catch (...) {
    thrown = std::current_exception();
  }
  if (!thrown) co_return;
  (run.get()->*threw)();
  std::rethrow_exception(thrown);
}

// Points to an exchange during its lifetime, also if its leg throws.
class Pointed {
 public:
  Pointed(http_client::Exchange*& pointer, http_client::Exchange& exchange)
      : pointer_(pointer), exchange_(exchange) {
    pointer_ = &exchange_;
  }
  Pointed(const Pointed&) = delete;
  Pointed& operator=(const Pointed&) = delete;
  ~Pointed() {
    if (pointer_ == &exchange_) pointer_ = nullptr;
  }

 private:
  http_client::Exchange*& pointer_;
  http_client::Exchange& exchange_;
};

}  // namespace

HandoffSession::HandoffSession(Handoff& handoff, HandoffRequest request, RequestTrace& trace,
                               Cancellation& cancellation)
    : handoff_(handoff),
      request_(std::move(request)),
      scheduler_(request_, handoff.random_, handoff.metrics_),
      machine_(scheduler_.permissions()),
      cancellation_(cancellation),
      trace_(&trace) {
  trace.page =
      handoff.decisions_.open(request_.request_id, request_.model->name(), request_.prompt_tokens);
  scheduler_.explain_to(trace.page);
  listener_.emplace(cancellation, [this, &cancellation] {
    gone_ = cancellation.reason();
    dispatch({Event::ClientGone});
  });
}

void HandoffSession::dispatch(const Input& input) {
  for (const Action action : machine_.on(input)) perform(action);
}

void HandoffSession::perform(Action action) {
  switch (action) {
    case Action::DropPrefill:
      prefill_dropped_ = true;
      if (prefill_exchange_) {
        prefill_exchange_->drop();
        abort(prefill_worker_, prefill_name_);
      }
      return;
    case Action::DropDecode:
      decode_dropped_ = true;
      if (decode_exchange_) {
        decode_exchange_->drop();
        abort(decode_booking_.shared_worker(), decode_name_);
      }
      return wake();
    case Action::SendRelease:
      release();
      return;
    case Action::StartGrace:
      grace_ = std::make_unique<net::Deadline>(handoff_.pool_.deadlines(),
                                               [this] { dispatch({Event::GraceOver}); });
      grace_->arm(grace());
      return;
    default:
      todo_.push_back(action);
      wake();
  }
}

// A decode worker that has not come to a push yet would not take the blocks after it was closed.
std::chrono::milliseconds HandoffSession::grace() const {
  const bool pushes = mode_ && rules_of(*mode_).when_abandoned == WhenAbandoned::AwaitPrefill &&
                      !outcome_->handoff.empty();
  return pushes ? std::max(handoff_.options_.grace, kPushLease) : handoff_.options_.grace;
}

awaitable<Result<void>> HandoffSession::begin() {
  for (const Action action : machine_.begin()) perform(action);
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
        if (is_poison_by_now()) {
          dispatch({Event::NoPrefill});
        } else {
          co_await choose_prefill();
        }
        break;
      case Action::ChooseDecode:
        if (is_poison_by_now()) {
          dispatch({Event::NoDecode});
        } else {
          co_await choose_decode();
        }
        break;
      case Action::SendPrefill:
        prefill_sent_ = false;
        if (rules_of(*mode_).order == LegOrder::Together) {
          handoff_.tasks_.spawn(beside(shared_from_this(), &HandoffSession::prefill_leg,
                                       &HandoffSession::prefill_threw));
        } else {
          co_await prefill_leg();
        }
        break;
      case Action::SendDecode:
      case Action::SendAlone:
        co_await decode_leg();
        break;
      case Action::Deliver:
        co_return Result<void>{};
      case Action::AnswerFromPrefill:
        clear_suspicion();
        whole_ = std::move(final_answer_);
        co_return Result<void>{};
      default:
        co_return fail(error_of(machine_.failed_by()));
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

void HandoffSession::leave() {
  listener_.reset();
  if (trace_) {
    trace_->retries = machine_.retries();
    trace_->migrations = machine_.migrations();
    request_.counters.retries.add(machine_.retries());
    request_.counters.migrations.add(machine_.migrations());
    trace_ = nullptr;
  }
  if (!machine_.ended()) {
    if (!gone_) gone_.emplace(Errc::ClientGone, "the request was given up");
    dispatch({Event::ClientGone});
    if (decode_exchange_ && !decode_dropped_) abort(decode_booking_.shared_worker(), decode_name_);
    // The client reads no further, whatever would have been better.
    if (decode_exchange_) {
      using How = engine::DecodeEnd::How;
      const auto how = decode_exchange_->sent_whole() ? How::Closed : How::Unsent;
      dispatch({.event = Event::DecodeFailed, .failure = {.freed = frees_blocks({.how = how})}});
    }
  }
  // No later event will show whether the request is the reason; its blocks are released all the
  // same.
  send_held_releases();
  decode_exchange_.reset();
  decode_booking_ = {};
  if (prefill_exchange_ == nullptr) lease_ = {};
}

void HandoffSession::first_token() {
  if (std::exchange(streaming_, true)) return;
  decode_booking_.worker().progressed();
  decode_booking_.prefill_completed();
  if (handed_off_) transfer_.arrived();
  lease_.done();
  dispatch({Event::FirstToken});
  clear_suspicion();
  if (gone_) count_waste();
  if (!request_.continuable) {
    // A long prompt need not wait for the end of its answer.
    request_.body.reset();
    request_.token_ids.reset();
    request_.headers = {};
    ticket_.reset();
  }
}

void HandoffSession::finished() {
  if (decode_exchange_) decode_booking_.worker().succeeded();
  dispatch({Event::DecodeFinished});
}

awaitable<Result<void>> HandoffSession::recover(Error error, const engine::Progress* progress) {
  if (progress) progress_ = std::make_unique<engine::Progress>(*progress);
  co_await look_for_end(error);
  decode_failed(std::move(error));
  co_return co_await proceed();
}

awaitable<void> HandoffSession::await_prefill(bool needed) {
  const auto until =
      steady_clock::now() + (needed ? handoff_.options_.timeouts.first_byte : kPrefillPatience);
  // The flow is woken for other events, too: for the head of the prefill's answer, which may come
  // after the whole of the decode's.
  while (prefill_exchange_ && steady_clock::now() < until) {
    wake_timer_ = std::make_unique<boost::asio::steady_timer>(
        co_await boost::asio::this_coro::executor, until);
    co_await wake_timer_->async_wait(net::kAwait);
    wake_timer_.reset();
  }
}

Error HandoffSession::error_of(Cause cause) const {
  if (poison_ && cause != Cause::ClientGone) return *poison_;
  switch (cause) {
    case Cause::ClientGone:
      return *gone_;
    case Cause::Prefill:
      return *prefill_error_;
    case Cause::NoPrefill:
      if (!scheduler_.permissions().required) return *prefill_error_;
      return Error(Errc::PrefillUnavailable,
                   fmt::format("the model \"{}\" serves with prefill workers only, and none is "
                               "active: {}",
                               request_.model->name(), prefill_error_->message()))
          .with_retry_after(std::chrono::seconds(1));
    case Cause::Decode:
    case Cause::NoDecode:
    case Cause::None:
      break;
  }
  return *decode_error_;
}

engine::LegName HandoffSession::name_leg(const fleet::Worker& worker) {
  if (worker.spec().engine != model::Engine::Sglang) return {};
  if (const auto key = request_.headers.find("authorization")) authorization_ = *key;
  return {.high = handoff_.random_(), .low = handoff_.random_()};
}

void HandoffSession::abort(std::shared_ptr<const fleet::Worker> worker, engine::LegName name) {
  if (!name) return;
  handoff_.tasks_.spawn(abort_leg(handoff_.pool_, std::move(worker), name, authorization_));
}

awaitable<void> HandoffSession::prefill_leg() {
  fleet::Booking booking = std::move(prefill_booking_);
  if (prefill_dropped_) {  // before it began
    prefill_failed(given_up(), booking.worker());
    co_return;
  }
  const Material held = material();  // the client's flow may let go of it meanwhile
  fleet::Worker& worker = booking.worker();
  const ModeRules& rules = rules_of(*mode_);
  const engine::Dialect& dialect = engine::dialect_of(*mode_);
  booking.sent();
  if (trace_) trace_->prefill.begin(booking);
  if (request_.observer) request_.observer->computing(booking);
  lease_.counted();
  http_client::Exchange exchange(handoff_.pool_, {worker.id(), worker.spec().endpoint},
                                 handoff_.options_.timeouts);
  exchange.on_sent([this] { prefill_sent(); });
  const Pointed pointed(prefill_exchange_, exchange);
  prefill_name_ = name_leg(worker);
  const wire::SplicedBody body = co_await prefill_body(
      dialect, call(worker, engine::Leg::Compute, held, progress_.get(), prefill_name_));
  const bool by_room = *mode_ == model::HandoffMode::Bootstrap;  // which implies the rank
  const auto rank = by_room ? std::nullopt : booking.rank();
  const auto sent_at = steady_clock::now();
  const auto sent =
      co_await send(exchange, worker, rank, request_.headers, body, ticket_->request_id);
  Result<engine::PrefillOutcome> outcome =
      sent ? engine::PrefillOutcome() : Result<engine::PrefillOutcome>(fail(sent.error()));
  if (sent) {
    prefill_sent();  // it may answer before it has taken all of the request
    dispatch({Event::PrefillAccepted});
    outcome = co_await read_prefill(exchange, dialect, worker);
    if (outcome) outcome_memory_ = exchange.take_memory();
  }
  prefill_exchange_ = nullptr;
  wake();  // for await_prefill()
  if (!outcome) {
    const Error& error = outcome.error();
    if (!prefill_dropped_ && co_await has_ended(worker, error, exchange))
      ended_under(worker, sent_at);
    prefill_failed(std::move(outcome.error()), worker);
    co_return;
  }
  worker.succeeded();
  if (trace_) trace_->prefill.end();
  final_answer_ = std::exchange(outcome->final_answer, std::nullopt);
  outcome_ = std::make_shared<const engine::PrefillOutcome>(*std::move(outcome));
  booking.prefill_completed(computed_tokens(outcome_->usage));
  if (scheduler_.streams() && !streaming_)
    transfer_ = fleet::Transfer(booking, request_.prompt_tokens);
  lease_.done();
  if (request_.observer) request_.observer->computed(outcome_->usage);
  if (outcome_->peer && rules.mode != worker.spec().mode())
    handoff_.peers_.learn(worker.id(), booking.rank().value_or(0), *outcome_->peer);
  if (gone_ && !rules.keeps_blocks) count_waste();
  // It would compute every prompt for nothing.
  if (outcome_->unkept) worker.misconfigured(engine::kNoConnector);
  const bool kept = !outcome_->handoff.empty();
  if (final_answer_) {
    dispatch({.event = Event::PrefillEnded, .kept = kept});
  } else {
    dispatch(
        {kept || rules.order == LegOrder::Together ? Event::PrefillKept : Event::PrefillEmpty});
  }
}

void HandoffSession::prefill_sent() {
  prefill_sent_ = true;
  wake();
}

// A decode worker that waits for a vanished prefill may keep its own blocks for ever, as vLLM's
// does in a push.
awaitable<void> HandoffSession::await_prefill_sent() {
  if (!machine_.handing_off() || rules_of(*mode_).order != LegOrder::Together) co_return;
  while (!prefill_sent_ && !decode_dropped_) co_await wait_for_something_to_do();
}

awaitable<void> HandoffSession::decode_leg() {
  co_await await_prefill_sent();
  if (decode_dropped_) {  // before it began
    decode_failed(given_up());
    co_return;
  }
  const bool alone = !machine_.handing_off();
  const fleet::Worker& worker = decode_booking_.worker();
  decode_booking_.sent();
  if (trace_) trace_->decode.begin(decode_booking_);
  if (alone && request_.observer) request_.observer->computing(decode_booking_);
  if (alone) lease_.counted();
  if (alone && !scheduler_.streams()) prefill_unseen(co_await boost::asio::this_coro::executor);
  decode_exchange_ = std::make_unique<http_client::Exchange>(
      handoff_.pool_, http_client::Target{worker.id(), worker.spec().endpoint},
      handoff_.options_.timeouts);
  handed_off_ = !alone;
  decode_accepted_ = false;
  decode_sent_ = steady_clock::now();
  const Material held = material();
  decode_name_ = name_leg(worker);
  const engine::ClientCall wanted =
      call(worker, alone ? engine::Leg::Compute : engine::Leg::Continue, held, progress_.get(),
           decode_name_);
  const Parcel parcel = alone ? co_await plain_parcel(wanted, worker)
                              : co_await decode_parcel(*mode_, wanted, *ticket_, outcome_,
                                                       engine::DecodePurpose::Answer);
  std::string error_type;
  auto sent = co_await send(*decode_exchange_, worker, decode_booking_.rank(), request_.headers,
                            parcel.body, ticket_->request_id, parcel.signature, &error_type);
  if (!sent) {
    co_await look_for_end(sent.error());
    decode_failed(std::move(sent.error()), std::move(error_type));
    co_return;
  }
  decode_accepted_ = true;
  dispatch({Event::DecodeAccepted});
  if (decode_dropped_) {  // in the moment its answer came
    decode_failed(given_up());
    co_return;
  }
  if (!gone_) co_return;
  // The answer is not read, but its beginning proves that the cache has arrived.
  auto piece = co_await decode_exchange_->read();
  if (piece) first_token();
  decode_failed(piece ? *gone_ : std::move(piece.error()));
}

void HandoffSession::prefill_unseen(const boost::asio::any_io_executor& home) {
  lease_.done();  // the requests that wait for it need not
  // It would count as work until the whole answer is there, and hold up those that wait for the
  // worker.
  unseen_ = std::make_unique<boost::asio::steady_timer>(home, decode_booking_.prefill_due());
  unseen_->async_wait([weak = weak_from_this()](boost::system::error_code error) {
    if (const auto run = weak.lock(); run && !error) run->decode_booking_.prefill_completed();
  });
}

void HandoffSession::prefill_failed(Error error, fleet::Worker& worker) {
  lease_ = {};
  const Failure failure = judge(error);
  if (!prefill_dropped_) {
    if (error.code() == Errc::EngineTimeout) abort(prefill_worker_, prefill_name_);
    prefill_error_ = std::move(error);
    if (!is_own_fault(*prefill_error_)) scheduler_.prefill_failed(worker);
    log_failure("prefill", worker, *prefill_error_);
    count_failure(worker, *prefill_error_);
    invalidate_peer_if_stale(*prefill_error_);
  }
  dispatch({.event = Event::PrefillFailed, .failure = failure});
}

void HandoffSession::prefill_threw() {
  lease_ = {};
  prefill_error_.emplace(Errc::Internal, "the prefill leg failed inside the router");
  dispatch({.event = Event::PrefillFailed, .failure = {.retryable = false}});
  wake();
}

engine::DecodeEnd HandoffSession::end_of(const http_client::Exchange& exchange,
                                         const fleet::Worker& worker, const Error& error,
                                         std::string error_type) {
  using How = engine::DecodeEnd::How;
  engine::DecodeEnd end{
      .how = How::Broken, .error_type = std::move(error_type), .version = worker.version()};
  // A kept connection may have died of this request; one that ended in a refusal has not.
  const bool untouched =
      error.code() == Errc::EngineOverloaded || (judge(error).untouched && !exchange.replayed());
  if (exchange.dropped() || error.code() == Errc::EngineTimeout) {
    end.how = exchange.sent_whole() ? How::Closed : How::Unsent;
  } else if (untouched) {
    end.how = How::Unsent;
  } else if (error.code() == Errc::EngineRejected || error.code() == Errc::EngineUnauthorized) {
    end.how = How::Refused;
  }
  return end;
}

bool HandoffSession::frees_blocks(const engine::DecodeEnd& end) const {
  return machine_.handing_off() && prefill_worker_ &&
         engine::dialect_of(prefill_worker_->spec().mode()).frees_blocks(end);
}

void HandoffSession::decode_failed(Error error, std::string error_type) {
  transfer_ = {};  // the next one would be given its time, too
  Failure failure = judge(error);
  if (decode_exchange_) {
    using How = engine::DecodeEnd::How;
    auto end = end_of(*decode_exchange_, decode_booking_.worker(), error, std::move(error_type));
    if (decode_accepted_ && !scheduler_.streams() && end.how == How::Broken)
      end.how = How::Answered;
    failure.freed = frees_blocks(end);
  }
  // The worker reported a failure, and had not got the cache yet.
  failure.either = error.code() == Errc::EngineFailed && machine_.handing_off() && !streaming_ &&
                   !decode_dropped_;
  // A kept connection may have died of the request, and only the next one was refused.
  if (decode_exchange_ && decode_exchange_->replayed()) failure.untouched = false;
  if (!decode_dropped_) {
    decode_error_ = std::move(error);
    fleet::Worker& worker = decode_booking_.worker();
    if (decode_error_->code() == Errc::EngineTimeout)
      abort(decode_booking_.shared_worker(), decode_name_);
    log_failure("decode", worker, *decode_error_);
    // A failure that may be another worker's fault, or the request's own, counts once.
    if (!scheduler_.failures().suspects_decode(worker.id())) count_failure(worker, *decode_error_);
    if (failure.either) {
      scheduler_.handoff_failed(worker, ticket_->peer.remembered);
    } else if (!is_own_fault(*decode_error_)) {
      scheduler_.decode_failed(worker);
    }
  }
  decode_exchange_.reset();
  decode_booking_ = {};
  if (!decode_dropped_) invalidate_peer_if_stale(*decode_error_);
  dispatch({.event = Event::DecodeFailed, .failure = failure});
}

// Before the cache has arrived, a leg may have failed because the prefill worker has restarted
// under another id: it is asked again.
void HandoffSession::invalidate_peer_if_stale(const Error& error) {
  if (streaming_ || error.info().fault != Fault::Engine) return;
  if (!machine_.handing_off() || !prefill_worker_) return;
  // If it has answered already, the answer has its current id.
  if (*mode_ == model::HandoffMode::NixlPush && outcome_->peer)
    handoff_.peers_.learn(prefill_worker_->id(), prefill_rank_, *outcome_->peer);
  handoff_.peers_.invalidate_if_stale(prefill_worker_->id(), prefill_rank_, ticket_->peer);
}

void HandoffSession::log_failure(std::string_view leg, const fleet::Worker& worker,
                                 const Error& error) const {
  if (!handoff_.options_.log || error.info().fault != Fault::Engine) return;
  handoff_.options_.log->warning("leg_failed", {{"id", request_.request_id},
                                                {"model", request_.model->name()},
                                                {"leg", leg},
                                                {"worker", worker.name()},
                                                {"code", error.info().label},
                                                {"error", error.message()}});
}

void HandoffSession::count_failure(fleet::Worker& worker, const Error& error) {
  switch (error.code()) {
    case Errc::EngineUnreachable:
      return worker.failed(error.cause() == std::errc::connection_refused
                               ? fleet::Failure::Refused
                               : fleet::Failure::Unreachable,
                           error.message());
    case Errc::EngineOverloaded:
      return worker.pushed_back(*error.retry_after());
    case Errc::EngineFailed:
    case Errc::EngineTimeout:
    case Errc::EngineProtocol:
    case Errc::StreamBroken:
    case Errc::NoHandoff:
      return worker.failed(fleet::Failure::Broken, error.message());
    default:  // not the worker's fault
      return;
  }
}

void HandoffSession::count_waste() {
  if (!outcome_->usage) return;
  const std::int64_t computed =
      outcome_->usage->prompt_tokens - outcome_->usage->cached_tokens.value_or(0);
  if (computed > 0)
    request_.counters.wasted_prefill_tokens.add(static_cast<std::uint64_t>(computed));
}

}  // namespace baton::handoff
