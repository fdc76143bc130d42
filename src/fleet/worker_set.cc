// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/worker_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace baton::fleet {
namespace {

bool asks_nothing_of_workers(const Wish& wish) {
  return !wish.allowed && !wish.mode && wish.constraints.empty();
}

bool is_excluded(const Worker& worker, const Wish& wish) {
  return std::ranges::find(wish.excluded, worker.id()) != wish.excluded.end();
}

bool is_allowed(const Worker& worker, const Wish& wish) {
  return !wish.allowed || std::ranges::any_of(*wish.allowed, [&worker](const std::string& one) {
    return worker.is_called(one);
  });
}

bool looks_at_load(model::Policy policy) {
  return policy == model::Policy::PowerOfTwo || policy == model::Policy::LeastLoaded;
}

Error unavailable(Errc code, std::string message) {
  return Error(code, std::move(message)).with_retry_after(std::chrono::seconds(1));
}

std::shared_ptr<Worker> find_in(const Members& members, std::string_view name) {
  // A name wins over a number that another worker happens to have.
  for (const auto& worker : members.workers) {
    if (worker->name() == name) return worker;
  }
  for (const auto& worker : members.workers) {
    if (worker->is_called(name)) return worker;
  }
  return nullptr;
}

Members with_candidates(std::vector<std::shared_ptr<Worker>> workers) {
  Members members{.workers = std::move(workers), .candidates = {}};
  std::uint32_t most = 0;
  for (const auto& worker : members.workers) most = std::max(most, worker->ranks());
  for (std::uint32_t rank = 0; rank < most; ++rank) {
    for (std::size_t i = 0; i < members.workers.size(); ++i) {
      if (rank < members.workers[i]->ranks()) members.candidates.push_back({i, rank});
    }
  }
  return members;
}

}  // namespace

// Role. One look at the set, for one wish: whoever joins or leaves meanwhile does not disturb it.
// Confinement. One call of the set.
class WorkerSet::Round {
 public:
  Round(const WorkerSet& set, const Wish& wish)
      : set_(set), wish_(wish), members_(set.members()), now_(Clock::now()) {}

  enum class Turn { Take, Look };
  // Index of the candidate; `Turn` says whether the cursor moves.
  Result<std::size_t> choose(const Random& random, Turn turn) const;
  Result<std::size_t> pinned(const routing::Pin& pin) const;
  bool can_serve() const;

  const std::shared_ptr<Worker>& worker(std::size_t i) const {
    return members_->workers[members_->candidates[i].worker];
  }
  std::uint32_t rank(std::size_t i) const { return members_->candidates[i].rank; }
  std::int64_t load(std::size_t i) const { return worker(i)->in_flight(rank(i)); }
  std::size_t size() const { return members_->candidates.size(); }
  std::string why_not(const Worker& worker) const;

 private:
  // Why a worker cannot have a request, in the order it is asked. Later reasons are nearer misses.
  enum class Refusal { NotAllowed, Down, Excluded, OtherMode, MissingTaint, None };

  // Whoever names a worker may have one that has failed others.
  bool is_out(const Worker& worker) const {
    return worker.standing(now_) >
           (wish_.pin ? std::max(wish_.worst, Standing::Doubtful) : wish_.worst);
  }
  Refusal refusal(const Worker& worker) const;
  // The best standing among those who may have the request; nothing where nobody may.
  std::optional<Standing> best_standing() const;
  template <class Pick>
  std::optional<std::size_t> choose_by_preference(Pick pick, Standing worst) const;
  Error none_eligible() const;
  std::optional<std::size_t> seated(const routing::Seat& seat) const;
  std::optional<std::size_t> index_of(const Worker& worker, std::uint32_t rank) const;

  const WorkerSet& set_;
  const Wish& wish_;
  std::shared_ptr<const Members> members_;
  Time now_;
};

void WorkerSet::add(std::shared_ptr<Worker> worker) {
  std::vector<std::shared_ptr<Worker>> workers = members()->workers;
  workers.push_back(std::move(worker));
  members_.set(with_candidates(std::move(workers)));
}

void WorkerSet::remove(const Worker& worker) {
  std::vector<std::shared_ptr<Worker>> workers = members()->workers;
  std::erase_if(workers, [&worker](const auto& one) { return one.get() == &worker; });
  members_.set(with_candidates(std::move(workers)));
}

std::shared_ptr<Worker> WorkerSet::find(std::string_view name) const {
  return find_in(*members(), name);
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

Result<Booking> WorkerSet::book(const Wish& wish, const Random& random) {
  const Round round(*this, wish);
  const auto chosen = round.choose(random, Round::Turn::Take);
  if (!chosen) return fail(chosen.error());
  return Booking(round.worker(*chosen), round.rank(*chosen));
}

Result<Choice> WorkerSet::peek(const Wish& wish, const Random& random) const {
  const Round round(*this, wish);
  const auto chosen = round.choose(random, Round::Turn::Look);
  if (!chosen) return fail(chosen.error());
  Choice choice{.picked = *chosen, .candidates = {}};
  for (std::size_t i = 0; i < round.size(); ++i) {
    const auto& worker = round.worker(i);
    const double preference = wish.constraints.preference(worker->taints());
    const std::int64_t running = round.load(i);
    std::string reason = round.why_not(*worker);
    if (reason.empty() && wish.pin && i != *chosen) reason = "another one is asked for";
    choice.candidates.push_back(
        {.worker = worker,
         .rank = worker->ranks() > 1 ? std::optional(round.rank(i)) : std::nullopt,
         .load = running,
         .preference = preference,
         .score = static_cast<double>(running + 1) * preference,
         .why_not = std::move(reason)});
  }
  return choice;
}

bool WorkerSet::can_serve(const Wish& wish) const { return Round(*this, wish).can_serve(); }

bool WorkerSet::Round::can_serve() const {
  if (wish_.pin) return pinned(*wish_.pin).has_value();
  if (set_.policy_ == model::Policy::Direct) return false;
  return std::ranges::any_of(members_->workers,
                             [&](const auto& one) { return refusal(*one) == Refusal::None; });
}

WorkerSet::Round::Refusal WorkerSet::Round::refusal(const Worker& worker) const {
  if (!is_allowed(worker, wish_)) return Refusal::NotAllowed;
  if (is_out(worker)) return Refusal::Down;
  // Whoever names a worker wants that one, whatever happened there.
  if (!wish_.pin && is_excluded(worker, wish_)) return Refusal::Excluded;
  if (wish_.mode && worker.spec().mode() != *wish_.mode) return Refusal::OtherMode;
  if (!wish_.constraints.satisfied_by(worker.taints())) return Refusal::MissingTaint;
  return Refusal::None;
}

std::string WorkerSet::Round::why_not(const Worker& worker) const {
  switch (refusal(worker)) {
    case Refusal::NotAllowed:
      return "it is not one of the allowed workers";
    case Refusal::Down:
      return fmt::format("it is not available ({})", worker.state(now_));
    case Refusal::Excluded:
      return "it has failed this request";
    case Refusal::OtherMode:
      return fmt::format("it hands off by {}, and {} is needed",
                         model::to_string(worker.spec().mode()), model::to_string(*wish_.mode));
    case Refusal::MissingTaint:
      return fmt::format("it lacks a required taint of {}",
                         fmt::join(wish_.constraints.required, ", "));
    case Refusal::None:
      break;
  }
  return "";
}

std::optional<Standing> WorkerSet::Round::best_standing() const {
  std::optional<Standing> best;
  for (const auto& worker : members_->workers) {
    const Standing standing = worker->standing(now_);
    if ((best && standing >= *best) || refusal(*worker) != Refusal::None) continue;
    best = standing;
    if (best == Standing::Good) break;
  }
  return best;
}

Result<std::size_t> WorkerSet::Round::choose(const Random& random, Turn turn) const {
  const std::size_t count = size();
  if (count == 0) {
    return fail(unavailable(
        Errc::NoWorkers, fmt::format("the model has no {} worker", model::to_string(set_.role_))));
  }
  if (wish_.pin) return pinned(*wish_.pin);
  if (set_.policy_ == model::Policy::Direct && wish_.whatever_policy) {
    for (std::size_t i = 0; i < count; ++i) {
      if (refusal(*worker(i)) == Refusal::None) return i;
    }
    return fail(none_eligible());
  }
  if (set_.policy_ == model::Policy::Direct) {
    return fail(Errc::InvalidRouting,
                fmt::format("the policy is direct, so the request must name its {} worker; send {}",
                            model::to_string(set_.role_), set_.worker_header()));
  }
  if (wish_.affinity) {
    if (const auto seat = seated(*wish_.affinity)) return *seat;
  }
  const auto dice = [&random] { return random(); };  // by reference: a copy would repeat itself
  const auto pick = [&](auto cost, auto eligible) {
    return turn == Turn::Take ? set_.selector_.pick(count, cost, eligible, dice)
                              : set_.selector_.peek(count, cost, eligible, dice);
  };
  // The best may have gone down in this moment; then the second best is the best.
  for (auto worst = best_standing(); worst; worst = best_standing()) {
    const auto picked =
        asks_nothing_of_workers(wish_)
            ? pick([this](std::size_t i) { return load(i); },
                   [&](std::size_t i) {
                     const Worker& one = *worker(i);
                     return one.standing(now_) <= *worst && !is_excluded(one, wish_);
                   })
            : choose_by_preference(pick, *worst);
    if (picked) return *picked;
  }
  return fail(none_eligible());
}

template <class Pick>
std::optional<std::size_t> WorkerSet::Round::choose_by_preference(Pick pick, Standing worst) const {
  const auto preference = [&](std::size_t i) {
    return wish_.constraints.preference(worker(i)->taints());
  };
  const auto eligible = [&](std::size_t i) {
    return worker(i)->standing(now_) <= worst && refusal(*worker(i)) == Refusal::None;
  };
  if (looks_at_load(set_.policy_)) {
    const auto score = [&](std::size_t i) {
      return static_cast<double>(load(i) + 1) * preference(i);
    };
    return pick(score, eligible);
  }
  // Turns and dice know no cost: they go round among those wished for most.
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < size(); ++i) {
    if (eligible(i)) best = std::min(best, preference(i));
  }
  const auto running = [this](std::size_t i) { return load(i); };
  return pick(running, [&](std::size_t i) { return eligible(i) && preference(i) <= best; });
}

Result<std::size_t> WorkerSet::Round::pinned(const routing::Pin& pin) const {
  const auto invalid = [](std::string message) {
    return fail(Errc::InvalidRouting, std::move(message));
  };
  const std::string_view role = model::to_string(set_.role_);
  const std::shared_ptr<Worker> worker = find_in(*members_, pin.worker);
  if (worker == nullptr) {
    return invalid(fmt::format("the model has no {} worker '{}'", role, pin.worker));
  }
  const std::string who = fmt::format("{} worker '{}'", role, worker->name());
  const Refusal found = refusal(*worker);
  if (found == Refusal::Down) {
    return fail(unavailable(
        Errc::NoEligibleWorker,
        fmt::format("{} is asked for, but is not available ({})", who, worker->state(now_))));
  }
  const auto refused = [&] {
    return invalid(fmt::format("{} is asked for, but {}", who, why_not(*worker)));
  };
  if (found == Refusal::NotAllowed) return refused();
  if (!pin.rank && worker->ranks() > 1) {
    return invalid(fmt::format("{} has {} ranks and requires an explicit dp rank; send {}", who,
                               worker->ranks(), set_.rank_header()));
  }
  const std::uint32_t rank = pin.rank.value_or(0);
  if (rank >= worker->ranks()) {
    return invalid(
        fmt::format("{} has no rank {}; its ranks are 0 to {}", who, rank, worker->ranks() - 1));
  }
  if (found != Refusal::None) return refused();
  const std::size_t chosen = *index_of(*worker, rank);
  if (wish_.affinity) {
    const auto seat = seated(*wish_.affinity);
    if (seat && *seat != chosen) {
      return invalid(
          fmt::format("{} is asked for, but the session is served by '{}'; leave out {} or {}", who,
                      this->worker(*seat)->name(), set_.worker_header(), routing::kSessionHeader));
    }
  }
  return chosen;
}

Error WorkerSet::Round::none_eligible() const {
  const std::string_view role = model::to_string(set_.role_);
  bool anybody = false;
  Refusal nearest = Refusal::NotAllowed;
  for (const auto& worker : members_->workers) {
    anybody = anybody || (!is_out(*worker) && !is_excluded(*worker, wish_));
    nearest = std::max(nearest, refusal(*worker));
  }
  if (!anybody) {
    return unavailable(Errc::NoWorkers, set_.any_available()
                                            ? fmt::format("every {} worker has failed", role)
                                            : fmt::format("no {} worker is available", role));
  }
  std::string why;
  switch (nearest) {
    case Refusal::NotAllowed:
      why = wish_.allowed->empty()
                ? fmt::format("the request allows no worker at all")
                : fmt::format("none of the workers the request allows is a {} worker", role);
      break;
    case Refusal::Down:
      why = fmt::format("no {} worker that the request allows is available", role);
      break;
    case Refusal::Excluded:
      why = fmt::format("every {} worker that the request allows has failed", role);
      break;
    case Refusal::OtherMode:
      why = fmt::format("no available {} worker hands off by {}", role,
                        model::to_string(*wish_.mode));
      break;
    default:
      why = fmt::format("no available {} worker has the required taints: {}", role,
                        fmt::join(wish_.constraints.required, ", "));
  }
  return unavailable(Errc::NoEligibleWorker, std::move(why));
}

std::optional<std::size_t> WorkerSet::Round::seated(const routing::Seat& seat) const {
  for (const auto& worker : members_->workers) {
    if (worker->id() != seat.worker) continue;
    if (refusal(*worker) != Refusal::None || is_excluded(*worker, wish_)) return std::nullopt;
    if (!seat.rank && worker->ranks() > 1) return std::nullopt;
    return index_of(*worker, seat.rank.value_or(0));
  }
  return std::nullopt;
}

std::optional<std::size_t> WorkerSet::Round::index_of(const Worker& worker,
                                                      std::uint32_t rank) const {
  for (std::size_t i = 0; i < size(); ++i) {
    if (this->worker(i).get() == &worker && this->rank(i) == rank) return i;
  }
  return std::nullopt;
}

std::string_view WorkerSet::worker_header() const {
  return role_ == model::Role::Prefill ? routing::kPrefillWorkerHeader : routing::kWorkerHeader;
}

std::string_view WorkerSet::rank_header() const {
  return role_ == model::Role::Prefill ? routing::kPrefillRankHeader : routing::kRankHeader;
}

}  // namespace baton::fleet
