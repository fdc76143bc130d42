// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "model/worker.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace baton::scheduling {

// Whether the policy compares what runs on the workers; the others take turns or draw.
constexpr bool looks_at_load(model::Policy policy) {
  return policy == model::Policy::PowerOfTwo || policy == model::Policy::LeastLoaded;
}

// Role. Picks one of N workers by a policy that looks at load alone.
// Confinement. Any thread; the round-robin cursor is the only state.
// Invariants. Every eligible worker can be picked. Round robin visits eligible workers in turn;
//   ties of least_loaded go round in turn too, so equal workers share equally.
class Selector {
 public:
  explicit Selector(model::Policy policy) : policy_(policy) {}

  // `load(i)` and `eligible(i)` describe worker i of `count`; `random()` gives 64 uniform bits.
  // nullopt where none is eligible.
  template <class Load, class Eligible, class Random>
  std::optional<std::size_t> pick(std::size_t count, Load load, Eligible eligible, Random random) {
    return choose(
        count, [this] { return cursor_.fetch_add(1, std::memory_order_relaxed); }, load, eligible,
        random);
  }
  // The candidate that would be picked next; does not advance the turn.
  template <class Load, class Eligible, class Random>
  std::optional<std::size_t> peek(std::size_t count, Load load, Eligible eligible,
                                  Random random) const {
    return choose(
        count, [this] { return cursor_.load(std::memory_order_relaxed); }, load, eligible, random);
  }

 private:
  template <class Turn, class Load, class Eligible, class Random>
  std::optional<std::size_t> choose(std::size_t count, Turn turn, Load load, Eligible eligible,
                                    Random random) const {
    if (count == 0) return std::nullopt;
    switch (policy_) {
      case model::Policy::RoundRobin:
        return first_eligible(count, turn(), eligible);
      case model::Policy::Random:
        return first_eligible(count, random(), eligible);
      case model::Policy::PowerOfTwo:
        return lighter_of_two(count, load, eligible, random);
      case model::Policy::LeastLoaded:
      case model::Policy::Kv:
      case model::Policy::LoadAware:
      case model::Policy::Ttft:
        return lightest(count, turn(), load, eligible);
      case model::Policy::Direct:
        return std::nullopt;  // only a pin chooses
    }
    return std::nullopt;
  }

  template <class Eligible>
  static std::optional<std::size_t> first_eligible(std::size_t count, std::uint64_t start,
                                                   Eligible eligible) {
    // Reduced first: a start near the largest number would wrap and visit some twice, others never.
    const std::size_t first = start % count;
    for (std::size_t step = 0; step < count; ++step) {
      const std::size_t i = (first + step) % count;
      if (eligible(i)) return i;
    }
    return std::nullopt;
  }

  template <class Load, class Eligible, class Random>
  static std::optional<std::size_t> lighter_of_two(std::size_t count, Load load, Eligible eligible,
                                                   Random random) {
    const auto first = first_eligible(count, random(), eligible);
    if (!first || count == 1) return first;
    // The second is drawn from the others, so the two differ whenever they can.
    const auto other = [&](std::size_t i) { return i != *first && eligible(i); };
    const auto second = first_eligible(count, random(), other);
    if (!second) return first;
    return load(*second) < load(*first) ? second : first;
  }

  template <class Load, class Eligible>
  static std::optional<std::size_t> lightest(std::size_t count, std::uint64_t start, Load load,
                                             Eligible eligible) {
    using Amount = decltype(load(std::size_t{}));
    std::optional<std::size_t> best;
    Amount least{};
    std::size_t i = start % count;
    for (std::size_t step = 0; step < count; ++step, i = i + 1 == count ? 0 : i + 1) {
      if (!eligible(i)) continue;
      const Amount amount = load(i);
      if (best && !(amount < least)) continue;
      best = i;
      least = amount;
      // No candidate can have less load than 0.
      if (std::is_integral_v<Amount> && amount == 0) break;
    }
    return best;
  }

  model::Policy policy_;
  std::atomic<std::uint64_t> cursor_{0};
};

}  // namespace baton::scheduling
