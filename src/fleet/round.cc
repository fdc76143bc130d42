// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/round.h"

#include "fleet/worker_set.h"
#include "scheduling/policy/forecast.h"
#include "scheduling/policy/pick.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace baton::fleet {
namespace {

bool asks_nothing_of_workers(const Wish& wish) {
  return !wish.allowed && !wish.mode && wish.constraints.empty() && !wish.adapter;
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

Round::Round(const WorkerSet& set, const Wish& wish)
    : set_(set),
      wish_(wish),
      members_(set.members()),
      now_(Clock::now()),
      bounds_batches_(set.itl_ > std::chrono::milliseconds(0) && wish.part != Part::Prefill) {
  if (weighs_prompts(set.policy_))
    weighing_.emplace(set.role_, set.policy_, set.cost_, *set.ledger_, set.popularity_, *members_,
                      wish, now_, set.forecasts_ ? set.forecasts_->trust(now_) : 1);
  // Whoever names a worker means that one.
  if (wish.adapter && !wish.pin) {
    placement_.emplace(*wish.adapter, members_->workers, [this](const Worker& worker) {
      return refusal_of_base(worker) == Refusal::None;
    });
  }
}

bool Round::can_serve() const {
  if (wish_.pin) return pinned(*wish_.pin).has_value();
  if (set_.policy_ == model::Policy::Direct) return false;
  return std::ranges::any_of(members_->workers,
                             [&](const auto& one) { return refusal(*one) == Refusal::None; });
}

Round::Refusal Round::refusal(const Worker& worker) const {
  const Refusal found = refusal_of_base(worker);
  const bool lacks_it = placement_ && !placement_->takes(worker);
  return found == Refusal::None && lacks_it ? Refusal::NoAdapter : found;
}

Round::Refusal Round::refusal_of_base(const Worker& worker) const {
  if (!is_allowed(worker, wish_)) return Refusal::NotAllowed;
  if (is_out(worker)) return Refusal::Down;
  // Whoever names a worker wants that one, whatever happened there.
  if (!wish_.pin && is_excluded(worker, wish_)) return Refusal::Excluded;
  if (wish_.mode && worker.spec().mode() != *wish_.mode) return Refusal::OtherMode;
  if (!wish_.constraints.satisfied_by(worker.taints())) return Refusal::MissingTaint;
  return Refusal::None;
}

std::string Round::why_not(const Worker& worker) const {
  switch (refusal(worker)) {
    case Refusal::NotAllowed:
      return "it is not one of the allowed workers";
    case Refusal::Down:
      return fmt::format("it is not available ({})", worker.state(now_));
    case Refusal::Excluded:
      return "it, or a hand-off of it, has failed this request";
    case Refusal::OtherMode:
      return fmt::format("it hands off by {}, and {} is needed",
                         model::to_string(worker.spec().mode()), model::to_string(*wish_.mode));
    case Refusal::MissingTaint:
      return fmt::format("it lacks a required taint of {}",
                         fmt::join(wish_.constraints.required, ", "));
    case Refusal::NoAdapter:
      return fmt::format("it has not loaded the adapter '{}'", wish_.adapter->name);
    case Refusal::None:
      break;
  }
  return "";
}

std::optional<Standing> Round::best_standing() const {
  std::optional<Standing> best;
  for (const auto& worker : members_->workers) {
    const Standing standing = worker->standing(now_);
    if ((best && standing >= *best) || refusal(*worker) != Refusal::None) continue;
    best = standing;
    if (best == Standing::Good) break;
  }
  return best;
}

template <class Eligible>
auto Round::with_places(Eligible eligible) const {
  // Found out first: who asks twice takes two turns.
  bool some = false;
  for (std::size_t i = 0; bounds_batches_ && !some && i < size(); ++i)
    some = eligible(i) && !is_full(i);
  return [this, eligible, some](std::size_t i) { return eligible(i) && !(some && is_full(i)); };
}

Result<std::size_t> Round::choose(const Random& random, Turn turn) const {
  const std::size_t count = size();
  if (count == 0) {
    return fail(unavailable(
        Errc::NoWorkers, fmt::format("the model has no {} worker", model::to_string(set_.role_))));
  }
  if (wish_.pin) return weighed(pinned(*wish_.pin));
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
    const auto seat = seated(*wish_.affinity);
    // Where requests wait, nobody is seated behind much to do.
    if (seat && (!weighing_ || wish_.busy)) return weighed(*seat);
    if (seat) {
      auto best = choose_by_weight(random);
      return best && is_dearer(*seat, *best) ? best : weighed(*seat);
    }
  }
  if (weighing_) return choose_by_weight(random);
  const auto dice = [&random] { return random(); };  // by reference: a copy would repeat itself
  const auto pick = [&](auto cost, auto eligible) {
    return turn == Turn::Take ? set_.selector_.pick(count, cost, eligible, dice)
                              : set_.selector_.peek(count, cost, eligible, dice);
  };
  // The best may have gone down in this moment; then the second best is the best.
  for (auto worst = best_standing(); worst; worst = best_standing()) {
    const auto picked =
        asks_nothing_of_workers(wish_)
            ? pick([this](std::size_t i) { return load(i); }, with_places([&](std::size_t i) {
                     const Worker& one = *worker(i);
                     return one.standing(now_) <= *worst && !is_excluded(one, wish_) && !is_busy(i);
                   }))
            : choose_by_preference(pick, *worst);
    if (picked) return *picked;
    if (wish_.busy) return fail(all_busy());
  }
  return fail(none_eligible());
}

bool Round::is_busy(std::size_t i) const {
  if (!wish_.busy) return false;
  // A hand-off under way does not wait: its blocks are kept for it.
  if (wish_.part == Part::Both && is_full(i)) return true;
  return wish_.busy->crossed_by(*worker(i), members_->candidates[i].load->prefill_tokens(now_));
}

bool Round::has_room(std::size_t i) const {
  const Members::Candidate& seat = members_->candidates[i];
  // Where only whole answers come nobody learns how fast a rank is, and a guess holds up nobody.
  const scheduling::PrefillSpeed speed = seat.speed(now_);
  if (!wish_.observed && speed == scheduling::kUnmeasuredSpeed) return true;
  return scheduling::has_room(seat.load->prefill_seconds(now_),
                           static_cast<double>(seat.load->prefill_tokens()),
                           static_cast<double>(worker(i)->max_batched_tokens()), speed,
                           weighing_ ? weighing_->trust() : 1);
}

bool Round::is_crowded(std::size_t i) const {
  return is_busy(i) || (wish_.busy && wish_.busy->late && !has_room(i));
}

// A session is better served elsewhere than late; but where all are full, it stays with its cache.
bool Round::is_left(std::size_t seat) const {
  if (is_crowded(seat)) return true;
  if (wish_.part != Part::Both || !is_full(seat)) return false;
  for (std::size_t i = 0; i < size(); ++i) {
    if (refusal(*worker(i)) == Refusal::None && !is_full(i)) return true;
  }
  return false;
}

Error Round::all_busy() const {
  return unavailable(Errc::WorkersBusy,
                     fmt::format("every {} worker that may have the request is busy",
                                 model::to_string(set_.role_)));
}

// By more than what the session would lose: its prompt, computed anew.
bool Round::is_dearer(std::size_t seat, std::size_t than) const {
  const Weight there = weighing_->weigh(than);
  const auto tokens = static_cast<double>(there.leg.tokens);
  const double scale = std::max(1.0, wish_.cost.value_or(set_.cost_).prefill_load_scale);
  const double anew = there.forecast ? members_->candidates[than].speed(now_).seconds(tokens)
                                     : scale * tokens / there.leg.block_size;
  return weighing_->total(seat) > there.total + anew;
}

Result<std::size_t> Round::weighed(Result<std::size_t> only) const {
  if (only && weighing_) {
    const auto candidate = static_cast<std::uint32_t>(*only);
    weighing_->compare({&candidate, 1});
  }
  return only;
}

Result<std::size_t> Round::choose_by_weight(const Random& random) const {
  const auto worst = best_standing();
  if (!worst) return fail(none_eligible());
  const bool plain = asks_nothing_of_workers(wish_) && wish_.excluded.empty();
  const auto cheapest = [&](std::span<const std::uint32_t> among) -> std::size_t {
    weighing_->compare(among);
    const auto totals = weighing_->totals(among);
    const auto picked = scheduling::pick_cheapest(
        among.size(), [&](std::size_t i) { return totals[i]; }, [](std::size_t) { return true; },
        [&random] { return random(); }, weighing_->temperature());
    // No cost is a number where options and loads are absurd: anyone is better than nobody.
    return among[picked.value_or(0)];
  };
  std::vector<std::uint32_t> eligible(size());
  std::iota(eligible.begin(), eligible.end(), 0U);
  // Whoever only binds late finds nobody too busy.
  if (plain && !bounds_batches_ && (!wish_.busy || !wish_.busy->draws_a_line())) {
    // Mostly all are well: then it is cheaper to look at the health of one than of thousands.
    const std::size_t chosen = cheapest(eligible);
    if (worker(chosen)->standing(now_) == Standing::Good) return unless_late(chosen);
  }
  eligible.clear();
  bool anybody = false;
  for (std::size_t i = 0; i < size(); ++i) {
    const Worker& one = *worker(i);
    if (one.standing(now_) > *worst || (!plain && refusal(one) != Refusal::None)) continue;
    anybody = true;
    if (!is_busy(i)) eligible.push_back(static_cast<std::uint32_t>(i));
  }
  // The best may have gone down in this moment.
  if (!anybody) return fail(none_eligible());
  if (eligible.empty()) return fail(all_busy());
  if (bounds_batches_) {
    std::vector<std::uint32_t> with_place;
    std::ranges::copy_if(eligible, std::back_inserter(with_place),
                         [this](std::uint32_t i) { return !is_full(i); });
    if (!with_place.empty()) eligible.swap(with_place);
  }
  return unless_late(cheapest(eligible));
}

Result<std::size_t> Round::unless_late(std::size_t chosen) const {
  const bool late = wish_.busy && wish_.busy->late;
  if (!late || has_room(chosen)) return chosen;
  if (wish_.busy->favourite != nullptr)
    *wish_.busy->favourite = scheduling::SeatKey{worker(chosen)->id(), rank(chosen)};
  if (wish_.busy->awaiting != nullptr) {
    const auto time = weighing_->load_on(chosen).prefill_time.value_or(std::chrono::nanoseconds(0));
    *wish_.busy->awaiting = scheduling::Awaiting(worker(chosen)->load(rank(chosen)), time);
  }
  return fail(all_busy());
}

template <class Pick>
std::optional<std::size_t> Round::choose_by_preference(Pick pick, Standing worst) const {
  const auto preference = [&](std::size_t i) {
    return wish_.constraints.preference(worker(i)->taints());
  };
  const auto eligible = with_places([&](std::size_t i) {
    return worker(i)->standing(now_) <= worst && refusal(*worker(i)) == Refusal::None &&
           !is_busy(i);
  });
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

Result<std::size_t> Round::pinned(const scheduling::Pin& pin) const {
  const auto invalid = [](std::string message) {
    return fail(Errc::InvalidRouting, std::move(message));
  };
  const std::string_view role = model::to_string(set_.role_);
  const std::shared_ptr<Worker> worker = members_->find(pin.worker);
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
  if (is_crowded(chosen)) {
    return fail(unavailable(Errc::WorkersBusy, fmt::format("{} is asked for, and is busy", who)));
  }
  if (wish_.affinity) {
    const auto seat = seated(*wish_.affinity);
    if (seat && *seat != chosen) {
      return invalid(
          fmt::format("{} is asked for, but the session is served by '{}'; leave out {} or {}", who,
                      this->worker(*seat)->name(), set_.worker_header(), scheduling::kSessionHeader));
    }
  }
  return chosen;
}

Error Round::none_eligible() const {
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
    case Refusal::NoAdapter:
      why = fmt::format("no available {} worker has loaded the adapter '{}'", role,
                        wish_.adapter->name);
      break;
    default:
      why = fmt::format("no available {} worker has the required taints: {}", role,
                        fmt::join(wish_.constraints.required, ", "));
  }
  return unavailable(Errc::NoEligibleWorker, std::move(why));
}

std::optional<std::size_t> Round::seated(const scheduling::Seat& seat) const {
  for (const auto& worker : members_->workers) {
    if (worker->id() != seat.worker) continue;
    if (refusal(*worker) != Refusal::None || is_excluded(*worker, wish_)) return std::nullopt;
    if (!seat.rank && worker->ranks() > 1) return std::nullopt;
    const auto found = index_of(*worker, seat.rank.value_or(0));
    return found && is_left(*found) ? std::nullopt : found;
  }
  return std::nullopt;
}

std::optional<std::size_t> Round::index_of(const Worker& worker, std::uint32_t rank) const {
  for (std::size_t i = 0; i < size(); ++i) {
    if (this->worker(i).get() == &worker && this->rank(i) == rank) return i;
  }
  return std::nullopt;
}

}  // namespace baton::fleet
