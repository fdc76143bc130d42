// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/entrance.h"

#include "scheduling/queue/classes.h"
#include "scheduling/policy/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace baton::handoff {
namespace {

using scheduling::Attempted;
using scheduling::Awaited;
using scheduling::Chance;
using scheduling::Tried;

bool may_go_to(const scheduling::Hints& hints, const fleet::Worker& worker) {
  const auto is_this = [&worker](const std::string& name) { return worker.is_called(name); };
  return (!hints.allowed || std::ranges::any_of(*hints.allowed, is_this)) &&
         hints.constraints.satisfied_by(worker.taints());
}

// What the best cache of those workers that it may go to has of the prompt.
std::uint64_t most_cached_tokens(const Job& job, const Selection& selection) {
  const fleet::KnownPrompt& prompt = selection.prompt();
  const auto members = selection.first_workers().members();
  const scheduling::Pin* const pin = selection.first_pin();
  // Where there is no such worker the pin will be refused, or is not meant for these.
  const auto only = pin != nullptr ? members->find(pin->worker) : nullptr;
  std::uint64_t most = 0;
  for (const fleet::KnownPrompt::Hit& hit : prompt.hits) {
    const auto candidate = members->find(hit.seat);
    if (!candidate || !may_go_to(*job.hints, *members->worker(*candidate))) continue;
    if (only && (hit.seat.worker != only->id() || hit.seat.rank != pin->rank.value_or(0))) continue;
    const std::uint64_t blocks = std::uint64_t{hit.device} + hit.host + hit.disk;
    most = std::max(most, blocks * hit.block_size);
  }
  return std::min(most, prompt.tokens);
}

// Anybody of the pool may have it.
bool goes_anywhere(const scheduling::Hints& hints) {
  return !hints.prefill && !hints.decode && !hints.allowed && hints.constraints.required.empty();
}

// What it could follow another by, as its prompt was last looked at; nothing where it follows nobody.
std::optional<scheduling::Chain> chain_of(const Job& job, const Selection& selection) {
  const fleet::KnownPrompt& prompt = selection.prompt();
  if (!goes_anywhere(*job.hints) || prompt.shapes.empty() || !prompt.shapes.front().chain)
    return std::nullopt;
  const fleet::KnownPrompt::Shape& shape = prompt.shapes.front();
  return scheduling::Chain{.hashes = *shape.chain,
                          .cached = most_cached_tokens(job, selection) / shape.block_size,
                          .block_tokens = shape.block_size};
}

std::string seat_name(model::WorkerId worker, std::uint32_t rank) {
  return fmt::format("{}/{}", worker.value, rank);
}

// Requests with the same of this can go to the same workers.
Awaited choice_of(const Job& job, const Selection& selection) {
  const fleet::WorkerSet& workers = selection.first_workers();
  const scheduling::Hints& hints = *job.hints;
  if (const scheduling::Pin* const pin = selection.first_pin()) {
    const auto worker = workers.find(pin->worker);
    const std::uint32_t rank = pin->rank.value_or(0);
    return {.what = worker ? "only " + seat_name(worker->id(), rank) : "only " + pin->worker};
  }
  std::string what(model::to_string(workers.role()));
  if (const auto seat = selection.first_seat())
    what += fmt::format(" rather {}", seat_name(seat->worker, seat->rank.value_or(0)));
  if (job.adapter) what += fmt::format(" adapter {}", job.adapter->name);
  for (const std::string& taint : hints.constraints.required)
    what += fmt::format(" with {}", taint);
  if (hints.allowed) what += fmt::format(" of {}", fmt::join(*hints.allowed, ","));
  // Not every prefill worker can be followed by that one.
  if (selection.hands_off() && hints.decode)
    what += fmt::format(" before {}", hints.decode->worker);
  return {.what = std::move(what)};
}

std::string policy_class_of(const scheduling::Hints& hints) {
  const auto named = hints.metadata.find("policy-class");
  return named == hints.metadata.end() ? std::string() : named->second;
}

std::optional<fleet::BusyLine> busy_line(const config::QueueClass& one) {
  if (!one.queues()) return std::nullopt;
  return fleet::BusyLine{.tokens = one.busy_tokens,
                         .share = one.busy_share,
                         .late = one.late,
                         .awaiting = nullptr,
                         .favourite = nullptr,
                         .counted = nullptr};
}

// For so many new tokens, as fast as the first of its workers is.
double compute_seconds(const Selection& selection, std::uint64_t tokens) {
  const auto members = selection.first_workers().members();
  if (members->workers.empty()) return 0;
  return members->workers.front()
      ->pace(0)
      .speed(fleet::Clock::now())
      .seconds(static_cast<double>(tokens));
}

// What a worker may still have to compute when it takes a request that has waited for it.
double seconds_ahead(const config::QueueClass& its_class, const fleet::Worker& worker,
                     const scheduling::PrefillSpeed& speed) {
  if (its_class.late) return std::max(scheduling::kAheadSeconds, speed.seconds_per_step);
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
  double ahead = 0;          // what it may have to compute before
};
// Nothing where no worker has shown how fast it is.
std::optional<FirstToken> first_token(const Selection& selection,
                                      const config::QueueClass& its_class, std::uint64_t tokens,
                                      std::uint64_t new_tokens) {
  constexpr std::size_t kMostLookedAt = 64;  // the others are as these
  const auto members = selection.first_workers().members();
  const auto now = fleet::Clock::now();
  std::optional<FirstToken> least;
  for (std::size_t i = 0; i < std::min(members->candidates.size(), kMostLookedAt); ++i) {
    const fleet::Members::Candidate& one = members->candidates[i];
    const scheduling::PrefillSpeed speed = one.speed(now);
    if (speed == scheduling::kUnmeasuredSpeed) continue;
    double seconds = speed.seconds(static_cast<double>(new_tokens));
    if (selection.hands_off()) seconds += one.transfer_seconds(static_cast<double>(tokens), now);
    if (least && least->after_booking <= seconds) continue;
    least = {.after_booking = seconds,
             .ahead = seconds_ahead(its_class, *members->worker(i), speed)};
  }
  return least;
}

}  // namespace

bool Entrance::may_wait(const Job& job, const Selection& selection) {
  const config::Queue& queue = job.model->routing().queue;
  return !queue.classes.empty() || job.model->routing().slo ||
         queue.follow_tokens.value_or(0) > 0 ||
         selection.first_workers().policy() == model::Policy::Ttft;
}

std::optional<Waits> Entrance::foresee(const Job& job, Selection& selection) {
  if (!may_wait(job, selection)) return std::nullopt;
  const config::Queue queue =
      PoolGate::with_defaults(job.model->routing(), selection.first_workers().policy());
  const fleet::KnownPrompt& prompt = selection.prompt();
  const std::size_t its_class = scheduling::Classes(queue).resolve(
      policy_class_of(*job.hints), prompt.tokens - most_cached_tokens(job, selection));
  const auto gate = PoolGate::find(*selection.pool());
  Waits waits;
  if (gate) waits.ahead = gate->gate().totals(its_class).requests;
  const auto chain = chain_of(job, selection);
  if (gate && gate->followers() && chain && gate->followers()->find(*chain)) {
    waits.what = Waits::For::Request;
    return waits;
  }
  auto line = busy_line(queue.classes[its_class]);
  if (!line) return std::nullopt;
  std::optional<scheduling::SeatKey> favourite;
  line->favourite = &favourite;
  const auto first = selection.look_first(line);
  if (first || first.error().code() != Errc::WorkersBusy) return std::nullopt;
  if (!favourite) return waits;
  const auto members = selection.first_workers().members();
  const auto found = std::ranges::find(members->workers, favourite->worker, &fleet::Worker::id);
  if (found == members->workers.end()) return waits;
  waits.what = Waits::For::Worker;
  waits.worker = *found;
  if ((*found)->ranks() > 1) waits.rank = favourite->rank;
  return waits;
}

double Entrance::prefill_seconds(const Job& job, const Selection& selection) {
  return compute_seconds(selection, selection.prompt().tokens - most_cached_tokens(job, selection));
}

Entrance::Entrance(const Job& job, Selection& selection, std::shared_ptr<PoolGate> gate,
                   Choose choose, scheduling::Gate::Now now)
    : job_(job),
      selection_(selection),
      gate_(std::move(gate)),
      choose_(std::move(choose)),
      now_(std::move(now)) {}

scheduling::Request Entrance::request() {
  selection_.look_at_prompt();
  seen_ = true;
  const scheduling::Hints& hints = *job_.hints;
  const fleet::KnownPrompt& prompt = selection_.prompt();
  const std::uint64_t cached = most_cached_tokens(job_, selection_);
  // Those who wait for their best one are told which that is.
  const bool late =
      job_.model->routing().queue.classes.empty() && selection_.first_pin() == nullptr;
  scheduling::Request request{
      .policy_class = policy_class_of(hints),
      .strict_priority = hints.strict_priority.value_or(0),
      .priority_jump = static_cast<double>(std::max(0, hints.priority.value_or(0))),
      .tenant = hints.tenant.empty() ? job_.client : hints.tenant,
      .prompt_tokens = prompt.tokens,
      .cached_tokens = cached,
      .awaits = late ? Awaited() : choice_of(job_, selection_),
      .compute_seconds = compute_seconds(selection_, prompt.tokens - cached),
      .workers = std::max<std::size_t>(1, selection_.first_workers().size()),
      .choosy = !goes_anywhere(hints) || job_.adapter,
      .patience = job_.patience,
      .follows = [this] { return leader(); },
      .due = {}};
  set_due(request);
  return request;
}

void Entrance::set_due(scheduling::Request& request) {
  const std::uint64_t new_tokens = request.prompt_tokens - request.cached_tokens;
  const auto [its_class, slo] = gate_->class_of(request.policy_class, new_tokens);
  slo_ = slo;
  if (!slo_ || !slo_->slo().ttft) return;
  const auto first = first_token(selection_, its_class, request.prompt_tokens, new_tokens);
  if (!first) return;  // nobody can tell
  const auto in_time = [](double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  };
  const Clock::duration objective = *slo_->slo().ttft;
  const double budget = std::chrono::duration<double>(objective).count() * slo_->margin();
  // No worker could, and none has to be kept free for it.
  request.behind = first->after_booking > std::chrono::duration<double>(objective).count();
  if (request.behind) return;
  const Clock::time_point now = now_();
  const Clock::time_point received = job_.received.value_or(now);
  const double after = first->after_booking + first->ahead;
  // Also one that is late already has its turn once, where a worker has time.
  constexpr std::chrono::milliseconds kOneTurn{5};
  request.due = scheduling::Due{.received = received,
                               .by = std::max(received + in_time(budget - after), now + kOneTurn),
                               .after = in_time(after),
                               .objective = objective,
                               .queue_late = slo_->slo().queue_late};
}

bool Entrance::lacks_places() const {
  if (!selection_.hands_off()) return false;
  const auto places = selection_.pool()->workers(model::Role::Decode).free_places();
  if (!places) return false;
  const auto prefills = selection_.first_workers().members();
  if (prefills->workers.empty()) return *places <= 0;
  std::int64_t coming = 0;
  // Those on prefill workers will need one, where they have not got it with the first leg.
  if (rules_of(prefills->workers.front()->spec().mode()).order == LegOrder::PrefillFirst) {
    for (const fleet::Members::Candidate& one : prefills->candidates)
      coming += one.load->requests();
  }
  return coming >= *places;
}

bool Entrance::may_follow(Chance chance) const {
  return chance == Chance::Usual && followed_ < scheduling::Followers::kLongest &&
         !(following_ && following_->over());
}

Tried Entrance::follow(scheduling::Following following) {
  follows_since_ = now_();
  following_ = std::move(following);
  return {Attempted::Follows, following_->awaits(),
          *follows_since_ + (scheduling::Followers::kLongest - followed_)};
}

std::optional<Tried> Entrance::leader() {
  if (!gate_->followers()) return std::nullopt;
  const auto chain = chain_of(job_, selection_);
  if (!chain) return std::nullopt;
  auto found = gate_->followers()->find(*chain);
  if (!found) return std::nullopt;
  seen_ = false;
  return follow(std::move(*found));
}

Result<Tried> Entrance::attempt(const config::QueueClass& one, Chance chance) {
  if (const auto since = std::exchange(follows_since_, std::nullopt)) followed_ += now_() - *since;
  awaiting_.reset();  // it does not wait for itself
  if (!std::exchange(seen_, false)) selection_.look_at_prompt();
  const auto chain = gate_->followers() ? chain_of(job_, selection_) : std::nullopt;
  // The prompt's own, whatever is looked at meanwhile.
  const auto hashes = chain ? selection_.prompt().shapes.front().chain : nullptr;
  if (chain && may_follow(chance)) {
    if (auto found = gate_->followers()->find(*chain)) return follow(std::move(*found));
  }
  if (one.queues() && lacks_places()) return Tried(Attempted::Busy);
  awaiting_.emplace();
  std::optional<scheduling::SeatKey> favourite;
  auto line = busy_line(one);
  if (line) {
    line->awaiting = &*awaiting_;
    line->favourite = &favourite;
    line->counted = &counted_;
  }
  auto booking = choose_(line);
  if (!booking) {
    if (booking.error().code() != Errc::WorkersBusy) return fail(std::move(booking.error()));
    return Tried(
        Attempted::Busy,
        favourite ? Awaited{.what = seat_name(favourite->worker, favourite->rank), .surely = false}
                  : Awaited());
  }
  if (chain) {
    auto led = gate_->followers()->lead(*chain, following_);
    if (!led && may_follow(chance)) {
      selection_.given_back("another request was booked to compute the same in this moment");
      return follow(std::move(led.error()));
    }
    if (led) leading_ = std::move(*led);
  }
  booked_ = std::move(*booking);
  return Tried(Attempted::Taken);
}

Waited Entrance::waited(scheduling::Admitted admitted) const {
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

}  // namespace baton::handoff
