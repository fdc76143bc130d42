// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/worker_booking.h"

#include "scheduling/selection_pass.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

namespace baton::scheduling {
namespace {

// The load of a leg without a scorer: the known tokens, without regard to caches.
LegLoad plain_load(const WorkerRequirements& requirements, const fleet::Worker& worker) {
  const std::uint32_t block_size = worker.spec().block_size.value_or(fleet::Worker::kUsualBlock);
  const std::uint64_t tokens = requirements.prompt ? requirements.prompt->tokens : 0;
  LegLoad load;
  load.prefill_tokens = requirements.part == Part::Decode ? 0 : tokens;
  load.blocks = (tokens + block_size - 1) / block_size;
  load.block_size = block_size;
  return load;
}

Choice::Candidate describe(const SelectionPass& pass, std::size_t i,
                           const WorkerRequirements& requirements, std::size_t picked) {
  const auto& worker = pass.worker(i);
  Choice::Candidate candidate{
      .worker = worker,
      .rank = worker->ranks() > 1 ? std::optional(pass.rank(i)) : std::nullopt,
      .load = pass.load(i),
      .preference = requirements.constraints.preference(worker->taints()),
      .score = 0,
      .why_not = pass.why_not(*worker),
      .weight = {}};
  if (const CandidateScorer* const scorer = pass.scorer()) candidate.weight = scorer->weigh(i);
  candidate.score = candidate.weight
                        ? candidate.weight->total
                        : static_cast<double>(candidate.load + 1) * candidate.preference;
  if (candidate.why_not.empty() && i != picked && pass.is_busy(i)) candidate.why_not = "it is busy";
  if (candidate.why_not.empty() && i != picked && pass.is_full(i) && !pass.is_full(picked))
    candidate.why_not = "with more requests its tokens would come too late";
  if (candidate.why_not.empty() && requirements.pin && i != picked)
    candidate.why_not = "another one is asked for";
  return candidate;
}

// If the session's rank could not be taken, the policy could not pick it either.
Choice::By decided_by(const SelectionPass& pass, const WorkerRequirements& requirements,
                      std::size_t picked) {
  if (requirements.pin) return Choice::By::Name;
  const bool by_session = requirements.affinity &&
                          requirements.affinity->worker == pass.worker(picked)->id() &&
                          requirements.affinity->rank.value_or(0) == pass.rank(picked);
  return by_session ? Choice::By::Session : Choice::By::Policy;
}

// The cheapest of the candidates, up to kMost.
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

// Adds the cheapest of those that were not picked; as many as the log keeps.
void add_others(Choice& choice, const SelectionPass& pass, const WorkerRequirements& requirements,
                std::size_t picked) {
  Cheapest<15> others;
  const CandidateScorer* const scorer = pass.scorer();
  const auto known = scorer != nullptr ? scorer->known_totals() : std::span<const double>();
  for (std::size_t i = 0; i < known.size(); ++i)
    if (i != picked) others.offer(known[i], i);
  if (known.empty()) {
    // A sample of a large fleet will do: the explanation may never be read.
    constexpr std::size_t kLookedAt = 256;
    const std::size_t step = (pass.size() + kLookedAt - 1) / kLookedAt;
    for (std::size_t i = 0; i < pass.size(); i += step)
      if (i != picked)
        others.offer(scorer != nullptr ? scorer->total(i) : static_cast<double>(pass.load(i)), i);
  }
  others.each(
      [&](std::size_t i) { choice.candidates.push_back(describe(pass, i, requirements, picked)); });
}

// The prompt has arrived. True if this call counts it.
bool count_arrival(const fleet::WorkerSet& set, const SelectionPass& pass) {
  const CandidateScorer* const scorer = pass.scorer();
  if (scorer == nullptr || !scorer->beginning()) return false;
  set.popularity().came(*scorer->beginning(), pass.now());
  return true;
}

NotBooked not_booked(Error why, const SelectionPass& pass) {
  NotBooked result(std::move(why));
  const auto late = pass.late_choice();
  if (late) result.favourite = RankKey{pass.worker(*late)->id(), pass.rank(*late)};
  return result;
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

std::expected<Booked, NotBooked> book(fleet::WorkerSet& set, const WorkerRequirements& requirements,
                                      const Random& random, BookingOptions options) {
  // A request that scores candidates sees the bookings before it, so that not all choose the
  // cheapest. Round robin and random picks need no lock for that. (No member is guarded by it, so the
  // compiler need not know whether it is held.)
  std::optional<locks::Lock<locks::Mutex>> lock;
  if (scores_prompts(set.policy()) || requirements.busy) lock.emplace(set.choosing());
  const SelectionPass pass(set, requirements);
  const auto chosen = pass.choose(random, SelectionPass::Turn::Take);
  const CandidateScorer* const scorer = pass.scorer();
  if (!chosen) {
    NotBooked result = not_booked(chosen.error(), pass);
    if (const auto late = pass.late_choice()) {
      const auto time = scorer->load_on(*late).prefill_time.value_or(std::chrono::nanoseconds(0));
      result.awaiting = Awaiting(pass.worker(*late)->load(pass.rank(*late)), time);
    }
    // Waiting requests make a prefix as popular as others.
    if (options.count_arrival && requirements.busy && result.code() == Errc::WorkersBusy)
      result.arrival_counted = count_arrival(set, pass);
    return std::unexpected(std::move(result));
  }
  const auto& worker = pass.worker(*chosen);
  if (requirements.accept && scorer != nullptr &&
      !requirements.accept(*worker, scorer->weigh(*chosen))) {
    return std::unexpected(
        NotBooked(Error(Errc::NoEligibleWorker, "the worker that would be chosen is not wanted")));
  }
  Booked result;
  if (options.explain) {
    result.choice = Choice{.picked = 0,
                           .candidates = {describe(pass, *chosen, requirements, *chosen)},
                           .of = pass.size(),
                           .by = decided_by(pass, requirements, *chosen),
                           .policy = set.policy()};
  }
  const std::uint32_t rank = pass.rank(*chosen);
  LegLoad load = scorer != nullptr ? scorer->load_on(*chosen) : plain_load(requirements, *worker);
  const std::optional<std::uint64_t> computes =
      requirements.part == Part::Decode || !requirements.observed
          ? std::nullopt
          : std::optional(load.prefill_tokens);
  std::optional<fleet::Expectation> expectation;
  if (set.forecasts() && computes && scorer != nullptr) {
    if (const auto seconds = scorer->expected_seconds(*chosen))
      expectation = {.of = set.forecasts(), .booked = pass.now(), .seconds = *seconds};
  }
  auto entry =
      set.ledger().book({worker->id(), rank}, worker->load(rank), std::move(load), pass.now());
  // A leg that computes nothing holds up no waiting request, unless it is in a place that they wait
  // for.
  const bool takes_place = pass.bounds_batches();
  result.booking = fleet::Booking(
      worker, rank, std::move(entry),
      requirements.part == Part::Decode && !takes_place ? nullptr : set.load_notifier(), computes,
      std::move(expectation));
  if (takes_place) result.booking.watch_gaps(set.itl());
  // The other candidates have not changed by this, and no request need wait until they are
  // described.
  lock.reset();
  if (options.count_arrival) result.arrival_counted = count_arrival(set, pass);
  if (options.explain) add_others(*result.choice, pass, requirements, *chosen);
  return result;
}

std::expected<Choice, NotBooked> peek(const fleet::WorkerSet& set,
                                      const WorkerRequirements& requirements,
                                      const Random& random) {
  const SelectionPass pass(set, requirements);
  const auto chosen = pass.choose(random, SelectionPass::Turn::Look);
  if (!chosen) return std::unexpected(not_booked(chosen.error(), pass));
  Choice choice{.picked = *chosen,
                .candidates = {},
                .of = pass.size(),
                .by = decided_by(pass, requirements, *chosen),
                .policy = set.policy()};
  for (std::size_t i = 0; i < pass.size(); ++i)
    choice.candidates.push_back(describe(pass, i, requirements, *chosen));
  return choice;
}

bool can_serve(const fleet::WorkerSet& set, const WorkerRequirements& requirements) {
  return SelectionPass(set, requirements).can_serve();
}

}  // namespace baton::scheduling
