// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/worker_set.h"

#include "fleet/round.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

namespace baton::fleet {
namespace {

// What a leg counts where nobody weighs: the tokens that are known, and nothing of what caches have.
scheduling::LegLoad plain_load(const Wish& wish, const Worker& worker) {
  const std::uint32_t block_size = worker.spec().block_size.value_or(Worker::kUsualBlock);
  const std::uint64_t tokens = wish.prompt ? wish.prompt->tokens : 0;
  scheduling::LegLoad load;
  load.prefill_tokens = wish.part == Part::Decode ? 0 : tokens;
  load.blocks = (tokens + block_size - 1) / block_size;
  load.block_size = block_size;
  return load;
}

Choice::Candidate describe(const Round& round, std::size_t i, const Wish& wish,
                           std::size_t picked) {
  const auto& worker = round.worker(i);
  Choice::Candidate candidate{
      .worker = worker,
      .rank = worker->ranks() > 1 ? std::optional(round.rank(i)) : std::nullopt,
      .load = round.load(i),
      .preference = wish.constraints.preference(worker->taints()),
      .score = 0,
      .why_not = round.why_not(*worker),
      .weight = {}};
  if (const Weighing* const weighing = round.weighing()) candidate.weight = weighing->weigh(i);
  candidate.score = candidate.weight
                        ? candidate.weight->total
                        : static_cast<double>(candidate.load + 1) * candidate.preference;
  if (candidate.why_not.empty() && i != picked && round.is_busy(i))
    candidate.why_not = "it is busy";
  if (candidate.why_not.empty() && i != picked && round.is_full(i) && !round.is_full(picked))
    candidate.why_not = "with more requests its tokens would come too late";
  if (candidate.why_not.empty() && wish.pin && i != picked)
    candidate.why_not = "another one is asked for";
  return candidate;
}

// A session's seat that could not be taken is not one that the policy could pick.
Choice::By decided_by(const Round& round, const Wish& wish, std::size_t picked) {
  if (wish.pin) return Choice::By::Name;
  const bool seated = wish.affinity && wish.affinity->worker == round.worker(picked)->id() &&
                      wish.affinity->rank.value_or(0) == round.rank(picked);
  return seated ? Choice::By::Session : Choice::By::Policy;
}

// The cheapest of so many candidates, up to kMost.
template <std::size_t kMost>
class Cheapest {
 public:
  void offer(double cost, std::size_t candidate) {
    // Absurd options make absurd costs, which come last.
    if (std::isnan(cost)) cost = std::numeric_limits<double>::infinity();
    if (count_ == kMost && !(cost < rows_[kMost - 1].cost)) return;
    std::size_t at = count_ < kMost ? count_++ : kMost - 1;
    for (; at > 0 && cost < rows_[at - 1].cost; --at) rows_[at] = rows_[at - 1];
    rows_[at] = {.cost = cost, .candidate = candidate};
  }
  template <class Visit>
  void each(Visit visit) const {
    for (std::size_t i = 0; i < count_; ++i) visit(rows_[i].candidate);
  }

 private:
  struct Row {
    double cost;
    std::size_t candidate;
  };
  std::array<Row, kMost> rows_;  // the first count_, in order
  std::size_t count_ = 0;
};

// Adds the cheapest of those that were not picked; so many as somebody reads.
void add_others(Choice& choice, const Round& round, const Wish& wish, std::size_t picked) {
  Cheapest<15> others;
  const Weighing* const weighing = round.weighing();
  const auto known = weighing != nullptr ? weighing->known_totals() : std::span<const double>();
  for (std::size_t i = 0; i < known.size(); ++i)
    if (i != picked) others.offer(known[i], i);
  if (known.empty()) {
    // A large fleet is not weighed for this, a sample will do: it is for somebody who may never ask.
    constexpr std::size_t kLookedAt = 256;
    const std::size_t step = (round.size() + kLookedAt - 1) / kLookedAt;
    for (std::size_t i = 0; i < round.size(); i += step)
      if (i != picked)
        others.offer(weighing != nullptr ? weighing->total(i) : static_cast<double>(round.load(i)),
                     i);
  }
  others.each(
      [&](std::size_t i) { choice.candidates.push_back(describe(round, i, wish, picked)); });
}

}  // namespace

std::string_view to_string(Choice::By by) {
  switch (by) {
    case Choice::By::Name:
      return "name";
    case Choice::By::Session:
      return "session";
    case Choice::By::Policy:
      break;
  }
  return "policy";
}

WorkerSet::WorkerSet(model::Role role, model::Policy policy, config::Cost cost,
                     std::shared_ptr<LoadBell> bell, std::shared_ptr<Forecasts> forecasts,
                     std::chrono::milliseconds itl)
    : role_(role),
      policy_(policy),
      cost_(cost),
      ledger_(std::make_shared<scheduling::LoadLedger>()),
      bell_(std::move(bell)),
      forecasts_(std::move(forecasts)),
      itl_(itl),
      selector_(policy) {}

void WorkerSet::add(std::shared_ptr<Worker> worker) {
  std::vector<std::shared_ptr<Worker>> workers = members()->workers;
  workers.push_back(std::move(worker));
  members_.set(Members(std::move(workers)));
  if (bell_) bell_->ring();
}

void WorkerSet::remove(const Worker& worker) {
  std::vector<std::shared_ptr<Worker>> workers = members()->workers;
  std::erase_if(workers, [&worker](const auto& one) { return one.get() == &worker; });
  members_.set(Members(std::move(workers)));
  if (bell_) bell_->ring();
}

std::shared_ptr<Worker> WorkerSet::find(std::string_view name) const {
  return members()->find(name);
}

bool WorkerSet::any_available() const {
  const Time now = Clock::now();
  const auto members = this->members();
  return std::ranges::any_of(members->workers, [now](const auto& worker) {
    // One on trial is there: whether it is well will be known in a moment.
    return worker->standing(now) <= Standing::Spare ||
           (worker->condition() == Condition::OnTrial && !worker->draining());
  });
}

std::optional<std::int64_t> WorkerSet::free_places() const {
  if (itl_ == std::chrono::milliseconds(0)) return std::nullopt;
  const Time now = Clock::now();
  const auto members = this->members();
  std::optional<std::int64_t> places;
  for (const Members::Candidate& one : members->candidates) {
    const Worker& worker = *members->workers[one.worker];
    if (worker.standing(now) > Standing::Spare) continue;
    const std::int64_t most = worker.batch_limit(one.seat.rank).most();
    if (most == scheduling::BatchLimit::kUnlimited) return std::nullopt;
    places = places.value_or(0) + std::max<std::int64_t>(0, most - one.load->requests());
  }
  return places;
}

Result<Booking> WorkerSet::book(const Wish& wish, const Random& random, Choice* told) {
  // Whoever weighs sees what the one before has booked: no herd runs to the cheapest. Whoever turns
  // or draws needs no lock for that.
  std::unique_lock lock(choosing_, std::defer_lock);
  if (weighs_prompts(policy_) || wish.busy) lock.lock();
  const Round round(*this, wish);
  const auto chosen = round.choose(random, Round::Turn::Take);
  if (!chosen) {
    // Those who have to wait make a beginning as hot as those who need not.
    if (wish.busy && wish.busy->counted != nullptr && chosen.error().code() == Errc::WorkersBusy)
      count(wish, round);
    return fail(chosen.error());
  }
  const auto& worker = round.worker(*chosen);
  const Weighing* const weighing = round.weighing();
  if (wish.accept && weighing != nullptr && !wish.accept(*worker, weighing->weigh(*chosen)))
    return fail(Errc::NoEligibleWorker, "the worker that would be chosen is not wanted");
  if (told != nullptr) {
    *told = {.picked = 0,
             .candidates = {describe(round, *chosen, wish, *chosen)},
             .of = round.size(),
             .by = decided_by(round, wish, *chosen),
             .policy = policy_};
  }
  const std::uint32_t rank = round.rank(*chosen);
  scheduling::LegLoad load =
      weighing != nullptr ? weighing->load_on(*chosen) : plain_load(wish, *worker);
  const std::optional<std::uint64_t> computes = wish.part == Part::Decode || !wish.observed
                                                    ? std::nullopt
                                                    : std::optional(load.prefill_tokens);
  std::optional<Expectation> expectation;
  if (forecasts_ && computes && weighing != nullptr) {
    if (const auto seconds = weighing->expected_seconds(*chosen))
      expectation = {.of = forecasts_, .booked = round.now(), .seconds = *seconds};
  }
  auto entry =
      ledger_->book({worker->id(), rank}, worker->load(rank), std::move(load), round.now());
  // Who computes nothing holds up nobody who waits, unless it is in a place that they wait for.
  const bool takes_place = round.bounds_batches();
  Booking booking(worker, rank, std::move(entry),
                  wish.part == Part::Decode && !takes_place ? nullptr : bell_, computes,
                  std::move(expectation));
  if (takes_place) booking.watch_gaps(itl_);
  // The others have not changed by this, and nobody need wait until they are written down.
  if (lock.owns_lock()) lock.unlock();
  count(wish, round);
  if (told != nullptr) add_others(*told, round, wish, *chosen);
  return booking;
}

void WorkerSet::count(const Wish& wish, const Round& round) {
  const Weighing* const weighing = round.weighing();
  if (weighing == nullptr || !weighing->beginning()) return;
  bool* const counted = wish.busy ? wish.busy->counted : nullptr;
  if (counted != nullptr && std::exchange(*counted, true)) return;
  popularity_.came(*weighing->beginning(), round.now());
}

Result<Choice> WorkerSet::peek(const Wish& wish, const Random& random) const {
  const Round round(*this, wish);
  const auto chosen = round.choose(random, Round::Turn::Look);
  if (!chosen) return fail(chosen.error());
  Choice choice{.picked = *chosen,
                .candidates = {},
                .of = round.size(),
                .by = decided_by(round, wish, *chosen),
                .policy = policy_};
  for (std::size_t i = 0; i < round.size(); ++i)
    choice.candidates.push_back(describe(round, i, wish, *chosen));
  return choice;
}

bool WorkerSet::can_serve(const Wish& wish) const { return Round(*this, wish).can_serve(); }

std::string_view WorkerSet::worker_header() const {
  return role_ == model::Role::Prefill ? scheduling::kPrefillWorkerHeader : scheduling::kWorkerHeader;
}

std::string_view WorkerSet::rank_header() const {
  return role_ == model::Role::Prefill ? scheduling::kPrefillRankHeader : scheduling::kRankHeader;
}

}  // namespace baton::fleet
