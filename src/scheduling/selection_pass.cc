// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/selection_pass.h"

#include "fleet/worker_set.h"
#include "scheduling/policy/forecast.h"
#include "scheduling/policy/pick.h"
#include "scheduling/policy/selector.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace baton::scheduling {
namespace {

bool asks_nothing_of_workers(const WorkerRequirements& requirements) {
  return !requirements.allowed && !requirements.mode && requirements.constraints.empty() &&
         !requirements.adapter;
}

bool is_excluded(const fleet::Worker& worker, const WorkerRequirements& requirements) {
  return std::ranges::find(requirements.excluded, worker.id()) != requirements.excluded.end();
}

bool is_allowed(const fleet::Worker& worker, const WorkerRequirements& requirements) {
  return !requirements.allowed ||
         std::ranges::any_of(*requirements.allowed,
                             [&worker](const std::string& one) { return worker.is_called(one); });
}

// The header that names a worker of this role, and its rank.
std::string_view worker_header(model::Role role) {
  return role == model::Role::Prefill ? kPrefillWorkerHeader : kWorkerHeader;
}
std::string_view rank_header(model::Role role) {
  return role == model::Role::Prefill ? kPrefillRankHeader : kRankHeader;
}

Error unavailable(Errc code, std::string message) {
  return Error(code, std::move(message)).with_retry_after(std::chrono::seconds(1));
}

}  // namespace

SelectionPass::SelectionPass(const fleet::WorkerSet& set, const WorkerRequirements& requirements)
    : set_(set),
      requirements_(requirements),
      members_(set.members()),
      now_(fleet::Clock::now()),
      bounds_batches_(set.itl() > std::chrono::milliseconds(0) &&
                      requirements.part != Part::Prefill) {
  if (scores_prompts(set.policy()))
    scorer_.emplace(set.role(), set.policy(), set.cost(), set.ledger(), set.popularity(), *members_,
                    requirements, now_, set.forecasts() ? set.forecasts()->trust(now_) : 1);
  // A pin overrides the placement of adapters.
  if (requirements.adapter && !requirements.pin) {
    placement_.emplace(
        *requirements.adapter, members_->workers,
        [this](const fleet::Worker& worker) { return refusal_of_base(worker) == Refusal::None; });
  }
}

bool SelectionPass::can_serve() const {
  if (requirements_.pin) return pinned(*requirements_.pin).has_value();
  if (set_.policy() == model::Policy::Direct) return false;
  return std::ranges::any_of(members_->workers,
                             [&](const auto& one) { return refusal(*one) == Refusal::None; });
}

SelectionPass::Refusal SelectionPass::refusal(const fleet::Worker& worker) const {
  const Refusal found = refusal_of_base(worker);
  const bool lacks_it = placement_ && !placement_->takes(worker);
  return found == Refusal::None && lacks_it ? Refusal::NoAdapter : found;
}

SelectionPass::Refusal SelectionPass::refusal_of_base(const fleet::Worker& worker) const {
  if (!is_allowed(worker, requirements_)) return Refusal::NotAllowed;
  if (is_out(worker)) return Refusal::Down;
  // A pin overrides exclusion.
  if (!requirements_.pin && is_excluded(worker, requirements_)) return Refusal::Excluded;
  if (requirements_.mode && worker.spec().mode() != *requirements_.mode) return Refusal::OtherMode;
  if (!requirements_.constraints.satisfied_by(worker.taints())) return Refusal::MissingTaint;
  return Refusal::None;
}

std::string SelectionPass::why_not(const fleet::Worker& worker) const {
  switch (refusal(worker)) {
    case Refusal::NotAllowed:
      return "it is not one of the allowed workers";
    case Refusal::Down:
      return fmt::format("it is not available ({})", worker.state(now_));
    case Refusal::Excluded:
      return "it, or a hand-off of it, has failed this request";
    case Refusal::OtherMode:
      return fmt::format("it hands off by {}, and {} is needed",
                         model::to_string(worker.spec().mode()),
                         model::to_string(*requirements_.mode));
    case Refusal::MissingTaint:
      return fmt::format("it lacks a required taint of {}",
                         fmt::join(requirements_.constraints.required, ", "));
    case Refusal::NoAdapter:
      return fmt::format("it has not loaded the adapter '{}'", requirements_.adapter->name);
    case Refusal::None:
      break;
  }
  return "";
}

std::optional<fleet::EligibilityTier> SelectionPass::best_tier() const {
  std::optional<fleet::EligibilityTier> best;
  for (const auto& worker : members_->workers) {
    const fleet::EligibilityTier tier = worker->tier(now_);
    if ((best && tier >= *best) || refusal(*worker) != Refusal::None) continue;
    best = tier;
    if (best == fleet::EligibilityTier::Good) break;
  }
  return best;
}

template <class Eligible>
auto SelectionPass::with_places(Eligible eligible) const {
  // Computed first: picking twice would take two turns.
  bool some = false;
  for (std::size_t i = 0; bounds_batches_ && !some && i < size(); ++i)
    some = eligible(i) && !is_full(i);
  return [this, eligible, some](std::size_t i) { return eligible(i) && !(some && is_full(i)); };
}

Result<std::size_t> SelectionPass::choose(const Random& random, Turn turn) const {
  const std::size_t count = size();
  if (count == 0) {
    return fail(unavailable(
        Errc::NoWorkers, fmt::format("the model has no {} worker", model::to_string(set_.role()))));
  }
  if (requirements_.pin) return weighed(pinned(*requirements_.pin));
  if (set_.policy() == model::Policy::Direct && requirements_.whatever_policy) {
    for (std::size_t i = 0; i < count; ++i) {
      if (refusal(*worker(i)) == Refusal::None) return i;
    }
    return fail(none_eligible());
  }
  if (set_.policy() == model::Policy::Direct) {
    return fail(Errc::InvalidRouting,
                fmt::format("the policy is direct, so the request must name its {} worker; send {}",
                            model::to_string(set_.role()), worker_header(set_.role())));
  }
  if (requirements_.affinity) {
    const auto bound = find_rank(*requirements_.affinity);
    // If requests can queue, none is placed behind much work.
    if (bound && (!scorer_ || requirements_.busy)) return weighed(*bound);
    if (bound) {
      auto best = choose_by_weight(random);
      return best && is_dearer(*bound, *best) ? best : weighed(*bound);
    }
  }
  if (scorer_) return choose_by_weight(random);
  const auto dice = [&random] { return random(); };  // by reference: a copy would repeat itself
  const auto pick = [&](auto cost, auto eligible) {
    return turn == Turn::Take ? set_.selector().pick(count, cost, eligible, dice)
                              : set_.selector().peek(count, cost, eligible, dice);
  };
  // The best may have gone down in this moment; then the second best is the best.
  for (auto worst = best_tier(); worst; worst = best_tier()) {
    const auto picked =
        asks_nothing_of_workers(requirements_)
            ? pick([this](std::size_t i) { return load(i); }, with_places([&](std::size_t i) {
                     const fleet::Worker& one = *worker(i);
                     return one.tier(now_) <= *worst && !is_excluded(one, requirements_) &&
                            !is_busy(i);
                   }))
            : choose_by_preference(pick, *worst);
    if (picked) return *picked;
    if (requirements_.busy) return fail(all_busy());
  }
  return fail(none_eligible());
}

bool SelectionPass::is_busy(std::size_t i) const {
  if (!requirements_.busy) return false;
  // A hand-off under way does not wait: its blocks are kept for it.
  if (requirements_.part == Part::Both && is_full(i)) return true;
  return requirements_.busy->crossed_by(*worker(i),
                                        members_->candidates[i].load->prefill_tokens(now_));
}

bool SelectionPass::has_room(std::size_t i) const {
  const fleet::Members::Candidate& candidate = members_->candidates[i];
  // If only whole answers come the rank's speed stays unmeasured, and a guess holds nothing up.
  const PrefillSpeed speed = candidate.speed(now_);
  if (!requirements_.observed && speed == kUnmeasuredSpeed) return true;
  return scheduling::has_room(
      candidate.load->prefill_seconds(now_), static_cast<double>(candidate.load->prefill_tokens()),
      static_cast<double>(worker(i)->max_batched_tokens()), speed, scorer_ ? scorer_->trust() : 1);
}

bool SelectionPass::is_crowded(std::size_t i) const {
  return is_busy(i) || (requirements_.busy && requirements_.busy->late && !has_room(i));
}

// A session is better served elsewhere than late; but if all are full, it stays with its cache.
bool SelectionPass::is_left(std::size_t candidate) const {
  if (is_crowded(candidate)) return true;
  if (requirements_.part != Part::Both || !is_full(candidate)) return false;
  for (std::size_t i = 0; i < size(); ++i) {
    if (refusal(*worker(i)) == Refusal::None && !is_full(i)) return true;
  }
  return false;
}

Error SelectionPass::all_busy() const {
  return unavailable(Errc::WorkersBusy,
                     fmt::format("every {} worker that may have the request is busy",
                                 model::to_string(set_.role())));
}

// By more than the session would lose: computing its prompt again.
bool SelectionPass::is_dearer(std::size_t candidate, std::size_t than) const {
  const CandidateScore there = scorer_->weigh(than);
  const auto tokens = static_cast<double>(there.leg.tokens);
  const double scale = std::max(1.0, requirements_.cost.value_or(set_.cost()).prefill_load_scale);
  const double anew = there.forecast ? members_->candidates[than].speed(now_).seconds(tokens)
                                     : scale * tokens / there.leg.block_size;
  return scorer_->total(candidate) > there.total + anew;
}

Result<std::size_t> SelectionPass::weighed(Result<std::size_t> only) const {
  if (only && scorer_) {
    const auto candidate = static_cast<std::uint32_t>(*only);
    scorer_->compare({&candidate, 1});
  }
  return only;
}

Result<std::size_t> SelectionPass::choose_by_weight(const Random& random) const {
  const auto worst = best_tier();
  if (!worst) return fail(none_eligible());
  const bool plain = asks_nothing_of_workers(requirements_) && requirements_.excluded.empty();
  const auto cheapest = [&](std::span<const std::uint32_t> among) -> std::size_t {
    scorer_->compare(among);
    const auto totals = scorer_->totals(among);
    const auto picked = pick_cheapest(
        among.size(), [&](std::size_t i) { return totals[i]; }, [](std::size_t) { return true; },
        [&random] { return random(); }, scorer_->temperature());
    // With absurd options and loads no cost is a number: any candidate is better than none.
    return among[picked.value_or(0)];
  };
  std::vector<std::uint32_t> eligible(size());
  std::iota(eligible.begin(), eligible.end(), 0U);
  // With late binding only, no worker is too busy.
  if (plain && !bounds_batches_ && (!requirements_.busy || !requirements_.busy->draws_a_line())) {
    // Mostly all are well: then it is cheaper to look at the health of one than of thousands.
    const std::size_t chosen = cheapest(eligible);
    if (worker(chosen)->tier(now_) == fleet::EligibilityTier::Good) return unless_late(chosen);
  }
  eligible.clear();
  bool any = false;
  for (std::size_t i = 0; i < size(); ++i) {
    const fleet::Worker& one = *worker(i);
    if (one.tier(now_) > *worst || (!plain && refusal(one) != Refusal::None)) continue;
    any = true;
    if (!is_busy(i)) eligible.push_back(static_cast<std::uint32_t>(i));
  }
  // The best may have gone down in this moment.
  if (!any) return fail(none_eligible());
  if (eligible.empty()) return fail(all_busy());
  if (bounds_batches_) {
    std::vector<std::uint32_t> with_place;
    std::ranges::copy_if(eligible, std::back_inserter(with_place),
                         [this](std::uint32_t i) { return !is_full(i); });
    if (!with_place.empty()) eligible.swap(with_place);
  }
  return unless_late(cheapest(eligible));
}

Result<std::size_t> SelectionPass::unless_late(std::size_t chosen) const {
  const bool late = requirements_.busy && requirements_.busy->late;
  if (!late || has_room(chosen)) return chosen;
  late_choice_ = chosen;
  return fail(all_busy());
}

template <class Pick>
std::optional<std::size_t> SelectionPass::choose_by_preference(Pick pick,
                                                               fleet::EligibilityTier worst) const {
  const auto preference = [&](std::size_t i) {
    return requirements_.constraints.preference(worker(i)->taints());
  };
  const auto eligible = with_places([&](std::size_t i) {
    return worker(i)->tier(now_) <= worst && refusal(*worker(i)) == Refusal::None && !is_busy(i);
  });
  if (looks_at_load(set_.policy())) {
    const auto score = [&](std::size_t i) {
      return static_cast<double>(load(i) + 1) * preference(i);
    };
    return pick(score, eligible);
  }
  // Policies without costs choose among the most preferred.
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < size(); ++i) {
    if (eligible(i)) best = std::min(best, preference(i));
  }
  const auto running = [this](std::size_t i) { return load(i); };
  return pick(running, [&](std::size_t i) { return eligible(i) && preference(i) <= best; });
}

Result<std::size_t> SelectionPass::pinned(const Pin& pin) const {
  const auto invalid = [](std::string message) {
    return fail(Errc::InvalidRouting, std::move(message));
  };
  const std::string_view role = model::to_string(set_.role());
  const std::shared_ptr<fleet::Worker> worker = members_->find(pin.worker);
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
                               worker->ranks(), rank_header(set_.role())));
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
  if (requirements_.affinity) {
    const auto bound = find_rank(*requirements_.affinity);
    if (bound && *bound != chosen) {
      return invalid(
          fmt::format("{} is asked for, but the session is served by '{}'; leave out {} or {}", who,
                      this->worker(*bound)->name(), worker_header(set_.role()), kSessionHeader));
    }
  }
  return chosen;
}

Error SelectionPass::none_eligible() const {
  const std::string_view role = model::to_string(set_.role());
  bool any = false;
  Refusal nearest = Refusal::NotAllowed;
  for (const auto& worker : members_->workers) {
    any = any || (!is_out(*worker) && !is_excluded(*worker, requirements_));
    nearest = std::max(nearest, refusal(*worker));
  }
  if (!any) {
    return unavailable(Errc::NoWorkers, set_.any_available()
                                            ? fmt::format("every {} worker has failed", role)
                                            : fmt::format("no {} worker is available", role));
  }
  std::string why;
  switch (nearest) {
    case Refusal::NotAllowed:
      why = requirements_.allowed->empty()
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
                        model::to_string(*requirements_.mode));
      break;
    case Refusal::NoAdapter:
      why = fmt::format("no available {} worker has loaded the adapter '{}'", role,
                        requirements_.adapter->name);
      break;
    default:
      why = fmt::format("no available {} worker has the required taints: {}", role,
                        fmt::join(requirements_.constraints.required, ", "));
  }
  return unavailable(Errc::NoEligibleWorker, std::move(why));
}

std::optional<std::size_t> SelectionPass::find_rank(const RankId& id) const {
  for (const auto& worker : members_->workers) {
    if (worker->id() != id.worker) continue;
    if (refusal(*worker) != Refusal::None || is_excluded(*worker, requirements_))
      return std::nullopt;
    if (!id.rank && worker->ranks() > 1) return std::nullopt;
    const auto found = index_of(*worker, id.rank.value_or(0));
    return found && is_left(*found) ? std::nullopt : found;
  }
  return std::nullopt;
}

std::optional<std::size_t> SelectionPass::index_of(const fleet::Worker& worker,
                                                   std::uint32_t rank) const {
  for (std::size_t i = 0; i < size(); ++i) {
    if (this->worker(i).get() == &worker && this->rank(i) == rank) return i;
  }
  return std::nullopt;
}

}  // namespace baton::scheduling
