// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/admission_attempt.h"

#include "engine/shared/handoff_rules.h"
#include "scheduling/policy/forecast.h"
#include "scheduling/queue/classes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace baton::scheduling {
namespace {

bool may_go_to(const Hints& hints, const fleet::Worker& worker) {
  const auto is_this = [&worker](const std::string& name) { return worker.is_called(name); };
  return (!hints.allowed || std::ranges::any_of(*hints.allowed, is_this)) &&
         hints.constraints.satisfied_by(worker.taints());
}

// Tokens of the prompt in the best cache among the workers that it may go to.
std::uint64_t most_cached_tokens(const ScheduledRequest& request, const WorkerSelector& selector) {
  const KnownPrompt& prompt = selector.prompt();
  const auto members = selector.first_workers().members();
  const Pin* const pin = selector.first_pin();
  // Without such a worker the pin will be refused, or is not meant for these.
  const auto only = pin != nullptr ? members->find(pin->worker) : nullptr;
  std::uint64_t most = 0;
  for (const KnownPrompt::Hit& hit : prompt.hits) {
    const auto candidate = members->find(hit.key);
    if (!candidate || !may_go_to(*request.hints, *members->worker(*candidate))) continue;
    if (only && (hit.key.worker != only->id() || hit.key.rank != pin->rank.value_or(0))) continue;
    const std::uint64_t blocks = std::uint64_t{hit.device} + hit.host + hit.disk;
    most = std::max(most, blocks * hit.block_size);
  }
  return std::min(most, prompt.tokens);
}

// Any worker of the pool is allowed.
bool goes_anywhere(const Hints& hints) {
  return !hints.prefill && !hints.decode && !hints.allowed && hints.constraints.required.empty();
}

// The chain to follow another request by, from the last look at the prompt; nothing if it may not.
std::optional<Chain> chain_of(const ScheduledRequest& request, const WorkerSelector& selector) {
  const KnownPrompt& prompt = selector.prompt();
  if (!goes_anywhere(*request.hints) || prompt.shapes.empty() || !prompt.shapes.front().chain)
    return std::nullopt;
  const KnownPrompt::Shape& shape = prompt.shapes.front();
  return Chain{.hashes = *shape.chain,
               .cached = most_cached_tokens(request, selector) / shape.block_size,
               .block_tokens = shape.block_size};
}

std::string rank_name(model::WorkerId worker, std::uint32_t rank) {
  return fmt::format("{}/{}", worker.value, rank);
}

// Requests with the same of this can go to the same workers.
WaitKey choice_of(const ScheduledRequest& request, const WorkerSelector& selector) {
  const fleet::WorkerSet& workers = selector.first_workers();
  const Hints& hints = *request.hints;
  if (const Pin* const pin = selector.first_pin()) {
    const auto worker = workers.find(pin->worker);
    const std::uint32_t rank = pin->rank.value_or(0);
    return {.what = worker ? "only " + rank_name(worker->id(), rank) : "only " + pin->worker};
  }
  std::string what(model::to_string(workers.role()));
  if (const auto bound = selector.session_rank())
    what += fmt::format(" rather {}", rank_name(bound->worker, bound->rank.value_or(0)));
  if (request.adapter) what += fmt::format(" adapter {}", request.adapter->name);
  for (const std::string& taint : hints.constraints.required)
    what += fmt::format(" with {}", taint);
  if (hints.allowed) what += fmt::format(" of {}", fmt::join(*hints.allowed, ","));
  // Not every prefill worker can be followed by that one.
  if (selector.hands_off() && hints.decode) what += fmt::format(" before {}", hints.decode->worker);
  return {.what = std::move(what)};
}

std::string policy_class_of(const Hints& hints) {
  const auto named = hints.metadata.find("policy-class");
  return named == hints.metadata.end() ? std::string() : named->second;
}

std::optional<BusyThreshold> busy_line(const config::QueueClass& one) {
  if (!one.queues()) return std::nullopt;
  return BusyThreshold{.tokens = one.busy_tokens, .share = one.busy_share, .late = one.late};
}

// Seconds for so many new tokens, at the speed of the first of its workers.
double compute_seconds(const WorkerSelector& selector, std::uint64_t tokens) {
  const auto members = selector.first_workers().members();
  if (members->workers.empty()) return 0;
  return members->workers.front()
      ->pace(0)
      .speed(fleet::Clock::now())
      .seconds(static_cast<double>(tokens));
}

// The work that a worker may still have when it takes a request that has waited for it.
double seconds_ahead(const config::QueueClass& its_class, const fleet::Worker& worker,
                     const PrefillSpeed& speed) {
  if (its_class.late) return std::max(kAheadSeconds, speed.seconds_per_step);
  auto tokens = static_cast<double>(its_class.busy_tokens.value_or(0));
  if (its_class.busy_share) {
    const double share = *its_class.busy_share * static_cast<double>(worker.max_batched_tokens());
    tokens = its_class.busy_tokens ? std::min(tokens, share) : share;
  }
  return speed.seconds_of(tokens);
}

// In seconds, on the fastest of its workers.
struct FirstToken {
  double after_booking = 0;  // were that idle
  double ahead = 0;          // work that it may have before
};
// Nothing if no worker has a measured speed.
std::optional<FirstToken> first_token(const WorkerSelector& selector,
                                      const config::QueueClass& its_class, std::uint64_t tokens,
                                      std::uint64_t new_tokens) {
  constexpr std::size_t kMostLookedAt = 64;  // the others are alike
  const auto members = selector.first_workers().members();
  const auto now = fleet::Clock::now();
  std::optional<FirstToken> least;
  for (std::size_t i = 0; i < std::min(members->candidates.size(), kMostLookedAt); ++i) {
    const fleet::Members::Candidate& one = members->candidates[i];
    const PrefillSpeed speed = one.speed(now);
    if (speed == kUnmeasuredSpeed) continue;
    double seconds = speed.seconds(static_cast<double>(new_tokens));
    if (selector.hands_off()) seconds += one.transfer_seconds(static_cast<double>(tokens), now);
    if (least && least->after_booking <= seconds) continue;
    least = {.after_booking = seconds,
             .ahead = seconds_ahead(its_class, *members->worker(i), speed)};
  }
  return least;
}

}  // namespace

bool AdmissionAttempt::may_wait(const ScheduledRequest& request, const WorkerSelector& selector) {
  const config::Queue& queue = request.model->routing().queue;
  return !queue.classes.empty() || request.model->routing().slo ||
         queue.follow_tokens.value_or(0) > 0 ||
         selector.first_workers().policy() == model::Policy::Ttft;
}

std::optional<Waits> AdmissionAttempt::foresee(const ScheduledRequest& request,
                                               WorkerSelector& selector) {
  if (!may_wait(request, selector)) return std::nullopt;
  const config::Queue queue =
      PoolQueue::with_defaults(request.model->routing(), selector.first_workers().policy());
  const KnownPrompt& prompt = selector.prompt();
  const std::size_t its_class = Classes(queue).resolve(
      policy_class_of(*request.hints), prompt.tokens - most_cached_tokens(request, selector));
  const auto waiting = PoolQueue::find(*selector.pool());
  Waits waits;
  if (waiting) waits.ahead = waiting->admission().totals(its_class).requests;
  const auto chain = chain_of(request, selector);
  if (waiting && waiting->coalescer() && chain && waiting->coalescer()->find(*chain)) {
    waits.what = Waits::For::Request;
    return waits;
  }
  auto line = busy_line(queue.classes[its_class]);
  if (!line) return std::nullopt;
  const auto first = selector.look_first(line);
  if (first || first.error().code() != Errc::WorkersBusy) return std::nullopt;
  const auto& favourite = first.error().favourite;
  if (!favourite) return waits;
  const auto members = selector.first_workers().members();
  const auto found = std::ranges::find(members->workers, favourite->worker, &fleet::Worker::id);
  if (found == members->workers.end()) return waits;
  waits.what = Waits::For::Worker;
  waits.worker = *found;
  if ((*found)->ranks() > 1) waits.rank = favourite->rank;
  return waits;
}

double AdmissionAttempt::prefill_seconds(const ScheduledRequest& request,
                                         const WorkerSelector& selector) {
  return compute_seconds(selector,
                         selector.prompt().tokens - most_cached_tokens(request, selector));
}

AdmissionAttempt::AdmissionAttempt(const ScheduledRequest& request, WorkerSelector& selector,
                                   std::shared_ptr<PoolQueue> queue, AdmissionQueue::Now now)
    : request_(request), selector_(selector), queue_(std::move(queue)), now_(std::move(now)) {}

QueueRequest AdmissionAttempt::request() {
  selector_.look_at_prompt();
  seen_ = true;
  const Hints& hints = *request_.hints;
  const KnownPrompt& prompt = selector_.prompt();
  const std::uint64_t cached = most_cached_tokens(request_, selector_);
  // With late binding the attempt itself names the worker to wait for.
  const bool late =
      request_.model->routing().queue.classes.empty() && selector_.first_pin() == nullptr;
  QueueRequest request{
      .policy_class = policy_class_of(hints),
      .strict_priority = hints.strict_priority.value_or(0),
      .priority_jump = static_cast<double>(std::max(0, hints.priority.value_or(0))),
      .tenant = hints.tenant.empty() ? request_.client : hints.tenant,
      .prompt_tokens = prompt.tokens,
      .cached_tokens = cached,
      .awaits = late ? WaitKey() : choice_of(request_, selector_),
      .compute_seconds = compute_seconds(selector_, prompt.tokens - cached),
      .workers = std::max<std::size_t>(1, selector_.first_workers().size()),
      .constrained = !goes_anywhere(hints) || request_.adapter,
      .max_wait = request_.max_queue_wait,
      .follows = [this] { return leader(); },
      .due = {}};
  set_due(request);
  return request;
}

void AdmissionAttempt::set_due(QueueRequest& request) {
  const std::uint64_t new_tokens = request.prompt_tokens - request.cached_tokens;
  const auto [its_class, slo] = queue_->class_of(request.policy_class, new_tokens);
  slo_ = slo;
  if (!slo_ || !slo_->slo().ttft) return;
  const auto first = first_token(selector_, its_class, request.prompt_tokens, new_tokens);
  if (!first) return;  // unknown
  const auto in_time = [](double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  };
  const Clock::duration objective = *slo_->slo().ttft;
  const double budget = std::chrono::duration<double>(objective).count() * slo_->margin();
  // No worker could, and none has to be kept free for it.
  request.behind = first->after_booking > std::chrono::duration<double>(objective).count();
  if (request.behind) return;
  const Clock::time_point now = now_();
  const Clock::time_point received = request_.received.value_or(now);
  const double after = first->after_booking + first->ahead;
  // Even a request that is late already gets one turn, if a worker has time.
  constexpr std::chrono::milliseconds kOneTurn{5};
  const Clock::time_point soonest = now + kOneTurn;
  request.due = Due{.received = received,
                    .foreseen_by = std::max(received + in_time(budget - after), soonest),
                    .by = std::max(received + objective - in_time(after), soonest),
                    .after = in_time(after),
                    .objective = objective,
                    .queue_late = slo_->slo().queue_late};
}

bool AdmissionAttempt::lacks_places() const {
  if (!selector_.hands_off()) return false;
  const auto places = selector_.pool()->workers(model::Role::Decode).free_places();
  if (!places) return false;
  const auto prefills = selector_.first_workers().members();
  if (prefills->workers.empty()) return *places <= 0;
  std::int64_t coming = 0;
  // Those on prefill workers will need one, where they have not got it with the first leg.
  if (engine::rules_of(prefills->workers.front()->spec().mode()).order ==
      engine::LegOrder::PrefillFirst) {
    for (const fleet::Members::Candidate& one : prefills->candidates)
      coming += one.load->requests();
  }
  return coming >= *places;
}

bool AdmissionAttempt::may_follow(Chance chance) const {
  return chance == Chance::Usual && followed_ < PrefillCoalescer::kLongest &&
         !(following_ && following_->over());
}

Tried AdmissionAttempt::follow(FollowedPrefill following) {
  follows_since_ = now_();
  following_ = std::move(following);
  return {Attempted::Follows, following_->awaits(),
          *follows_since_ + (PrefillCoalescer::kLongest - followed_)};
}

std::optional<Tried> AdmissionAttempt::leader() {
  if (!queue_->coalescer()) return std::nullopt;
  const auto chain = chain_of(request_, selector_);
  if (!chain) return std::nullopt;
  auto found = queue_->coalescer()->find(*chain);
  if (!found) return std::nullopt;
  seen_ = false;
  return follow(std::move(*found));
}

Result<Tried> AdmissionAttempt::attempt(const config::QueueClass& one, Chance chance) {
  if (const auto since = std::exchange(follows_since_, std::nullopt)) followed_ += now_() - *since;
  awaiting_ = {};  // it does not wait for itself
  if (!std::exchange(seen_, false)) selector_.look_at_prompt();
  const auto chain = queue_->coalescer() ? chain_of(request_, selector_) : std::nullopt;
  // The prompt's own, whatever is looked at meanwhile.
  const auto hashes = chain ? selector_.prompt().shapes.front().chain : nullptr;
  if (chain && may_follow(chance)) {
    if (auto found = queue_->coalescer()->find(*chain)) return follow(std::move(*found));
  }
  if (one.queues() && lacks_places()) return Tried(Attempted::Busy);
  auto booking = selector_.first(busy_line(one));
  if (!booking) {
    if (booking.error().code() != Errc::WorkersBusy) return fail(std::move(booking.error()));
    awaiting_ = std::move(booking.error().awaiting);
    const auto& favourite = booking.error().favourite;
    return Tried(
        Attempted::Busy,
        favourite ? WaitKey{.what = rank_name(favourite->worker, favourite->rank), .surely = false}
                  : WaitKey());
  }
  if (chain) {
    auto led = queue_->coalescer()->lead(*chain, following_);
    if (!led && may_follow(chance)) {
      selector_.given_back("another request was booked to compute the same in this moment");
      return follow(std::move(led.error()));
    }
    if (led) lease_ = std::move(*led);
  }
  booked_ = std::move(*booking);
  return Tried(Attempted::Taken);
}

Waited AdmissionAttempt::waited(Admitted admitted) const {
  Waited waited;
  waited.policy_class = std::move(admitted.policy_class);
  waited.ahead = admitted.ahead;
  // It may have been turned away while it followed another.
  const Clock::duration followed =
      followed_ + (follows_since_ ? now_() - *follows_since_ : Clock::duration(0));
  waited.followed = std::min(admitted.waited, followed);
  waited.queued = admitted.waited - waited.followed;
  return waited;
}

}  // namespace baton::scheduling
