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

bool is_out(const Worker& worker, const Wish& wish) {
  return !wish.also_down && worker.availability() == Availability::Down;
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

}  // namespace

void WorkerSet::add(std::unique_ptr<Worker> worker) {
  for (std::uint32_t rank = 0; rank < worker->ranks(); ++rank) {
    const auto at = std::ranges::upper_bound(candidates_, rank, {}, &Candidate::rank);
    candidates_.insert(at, {worker.get(), rank});
  }
  workers_.push_back(std::move(worker));
}

Worker* WorkerSet::find(std::string_view name) const {
  // A name wins over a number that another worker happens to have.
  for (const auto& worker : workers_) {
    if (worker->name() == name) return worker.get();
  }
  for (const auto& worker : workers_) {
    if (worker->is_called(name)) return worker.get();
  }
  return nullptr;
}

bool WorkerSet::any_available() const {
  return std::ranges::any_of(
      workers_, [](const auto& one) { return one->availability() != Availability::Down; });
}

Result<Booking> WorkerSet::book(const Wish& wish, const Random& random) {
  const auto chosen = choose(wish, random, Turn::Take);
  if (!chosen) return fail(chosen.error());
  return Booking(*candidates_[*chosen].worker, candidates_[*chosen].rank);
}

Result<Choice> WorkerSet::peek(const Wish& wish, const Random& random) const {
  const auto chosen = choose(wish, random, Turn::Look);
  if (!chosen) return fail(chosen.error());
  Choice choice{.picked = *chosen, .candidates = {}};
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const auto& [worker, rank] = candidates_[i];
    const double preference = wish.constraints.preference(worker->taints());
    const std::int64_t running = load(i);
    std::string reason = why_not(*worker, wish);
    if (reason.empty() && wish.pin && i != *chosen) reason = "another one is asked for";
    choice.candidates.push_back({.worker = worker,
                                 .rank = worker->ranks() > 1 ? std::optional(rank) : std::nullopt,
                                 .load = running,
                                 .preference = preference,
                                 .score = static_cast<double>(running + 1) * preference,
                                 .why_not = std::move(reason)});
  }
  return choice;
}

bool WorkerSet::can_serve(const Wish& wish) const {
  if (wish.pin) return pinned(*wish.pin, wish).has_value();
  if (policy_ == model::Policy::Direct) return false;
  return std::ranges::any_of(workers_,
                             [&](const auto& one) { return refusal(*one, wish) == Refusal::None; });
}

WorkerSet::Refusal WorkerSet::refusal(const Worker& worker, const Wish& wish) const {
  if (!is_allowed(worker, wish)) return Refusal::NotAllowed;
  if (is_out(worker, wish)) return Refusal::Down;
  // Whoever names a worker wants that one, whatever happened there.
  if (!wish.pin && is_excluded(worker, wish)) return Refusal::Excluded;
  if (wish.mode && worker.spec().mode() != *wish.mode) return Refusal::OtherMode;
  if (!wish.constraints.satisfied_by(worker.taints())) return Refusal::MissingTaint;
  return Refusal::None;
}

std::string WorkerSet::why_not(const Worker& worker, const Wish& wish) const {
  switch (refusal(worker, wish)) {
    case Refusal::NotAllowed:
      return "it is not one of the allowed workers";
    case Refusal::Down:
      return "it is not available";
    case Refusal::Excluded:
      return "it has failed this request";
    case Refusal::OtherMode:
      return fmt::format("it hands off by {}, and {} is needed",
                         model::to_string(worker.spec().mode()), model::to_string(*wish.mode));
    case Refusal::MissingTaint:
      return fmt::format("it lacks a required taint of {}",
                         fmt::join(wish.constraints.required, ", "));
    case Refusal::None:
      break;
  }
  return "";
}

Result<std::size_t> WorkerSet::choose(const Wish& wish, const Random& random, Turn turn) const {
  if (candidates_.empty()) {
    return fail(unavailable(Errc::NoWorkers,
                            fmt::format("the model has no {} worker", model::to_string(role_))));
  }
  if (wish.pin) return pinned(*wish.pin, wish);
  if (policy_ == model::Policy::Direct && wish.whatever_policy) {
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (refusal(*candidates_[i].worker, wish) == Refusal::None) return i;
    }
    return fail(none_eligible(wish));
  }
  if (policy_ == model::Policy::Direct) {
    return fail(Errc::InvalidRouting,
                fmt::format("the policy is direct, so the request must name its {} worker; send {}",
                            model::to_string(role_), worker_header()));
  }
  if (wish.affinity) {
    if (const auto seat = seated(*wish.affinity, wish)) return *seat;
  }
  const auto dice = [&random] { return random(); };  // by reference: a copy would repeat itself
  const auto pick = [&](auto cost, auto eligible) {
    return turn == Turn::Take ? selector_.pick(candidates_.size(), cost, eligible, dice)
                              : selector_.peek(candidates_.size(), cost, eligible, dice);
  };
  const auto running = [this](std::size_t i) { return load(i); };
  std::optional<std::size_t> picked;
  if (asks_nothing_of_workers(wish)) {
    picked = pick(running, [&](std::size_t i) {
      const Worker& worker = *candidates_[i].worker;
      return !is_out(worker, wish) && !is_excluded(worker, wish);
    });
  } else {
    picked = choose_by_preference(wish, pick);
  }
  if (!picked) return fail(none_eligible(wish));
  return *picked;
}

template <class Pick>
std::optional<std::size_t> WorkerSet::choose_by_preference(const Wish& wish, Pick pick) const {
  const auto preference = [&](std::size_t i) {
    return wish.constraints.preference(candidates_[i].worker->taints());
  };
  const auto eligible = [&](std::size_t i) {
    return refusal(*candidates_[i].worker, wish) == Refusal::None;
  };
  if (looks_at_load(policy_)) {
    const auto score = [&](std::size_t i) {
      return static_cast<double>(load(i) + 1) * preference(i);
    };
    return pick(score, eligible);
  }
  // Turns and dice know no cost: they go round among those wished for most.
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (eligible(i)) best = std::min(best, preference(i));
  }
  const auto running = [this](std::size_t i) { return load(i); };
  return pick(running, [&](std::size_t i) { return eligible(i) && preference(i) <= best; });
}

Result<std::size_t> WorkerSet::pinned(const routing::Pin& pin, const Wish& wish) const {
  const auto invalid = [](std::string message) {
    return fail(Errc::InvalidRouting, std::move(message));
  };
  const std::string_view role = model::to_string(role_);
  const Worker* const worker = find(pin.worker);
  if (worker == nullptr) {
    return invalid(fmt::format("the model has no {} worker '{}'", role, pin.worker));
  }
  const std::string who = fmt::format("{} worker '{}'", role, worker->name());
  const Refusal found = refusal(*worker, wish);
  if (found == Refusal::Down) {
    return fail(unavailable(Errc::NoEligibleWorker,
                            fmt::format("{} is asked for, but is not available", who)));
  }
  const auto refused = [&] {
    return invalid(fmt::format("{} is asked for, but {}", who, why_not(*worker, wish)));
  };
  if (found == Refusal::NotAllowed) return refused();
  if (!pin.rank && worker->ranks() > 1) {
    return invalid(fmt::format("{} has {} ranks and requires an explicit dp rank; send {}", who,
                               worker->ranks(), rank_header()));
  }
  const std::uint32_t rank = pin.rank.value_or(0);
  if (rank >= worker->ranks()) {
    return invalid(
        fmt::format("{} has no rank {}; its ranks are 0 to {}", who, rank, worker->ranks() - 1));
  }
  if (found != Refusal::None) return refused();
  const std::size_t chosen = *index_of(*worker, rank);
  if (wish.affinity) {
    const auto seat = seated(*wish.affinity, wish);
    if (seat && *seat != chosen) {
      return invalid(fmt::format(
          "{} is asked for, but the session is served by '{}'; leave out {} "
          "or {}",
          who, candidates_[*seat].worker->name(), worker_header(), routing::kSessionHeader));
    }
  }
  return chosen;
}

Error WorkerSet::none_eligible(const Wish& wish) const {
  const std::string_view role = model::to_string(role_);
  bool anybody = false;
  Refusal nearest = Refusal::NotAllowed;
  for (const auto& worker : workers_) {
    anybody = anybody || (!is_out(*worker, wish) && !is_excluded(*worker, wish));
    nearest = std::max(nearest, refusal(*worker, wish));
  }
  if (!anybody) {
    return unavailable(Errc::NoWorkers, any_available()
                                            ? fmt::format("every {} worker has failed", role)
                                            : fmt::format("no {} worker is available", role));
  }
  std::string why;
  switch (nearest) {
    case Refusal::NotAllowed:
      why = wish.allowed->empty()
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
      why =
          fmt::format("no available {} worker hands off by {}", role, model::to_string(*wish.mode));
      break;
    default:
      why = fmt::format("no available {} worker has the required taints: {}", role,
                        fmt::join(wish.constraints.required, ", "));
  }
  return unavailable(Errc::NoEligibleWorker, std::move(why));
}

std::optional<std::size_t> WorkerSet::seated(const routing::Seat& seat, const Wish& wish) const {
  for (const auto& worker : workers_) {
    if (worker->id() != seat.worker) continue;
    if (refusal(*worker, wish) != Refusal::None || is_excluded(*worker, wish)) return std::nullopt;
    if (!seat.rank && worker->ranks() > 1) return std::nullopt;
    return index_of(*worker, seat.rank.value_or(0));
  }
  return std::nullopt;
}

std::optional<std::size_t> WorkerSet::index_of(const Worker& worker, std::uint32_t rank) const {
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (candidates_[i].worker == &worker && candidates_[i].rank == rank) return i;
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
