// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace baton::scheduling {

// Below `count`, each equally likely; `bits` are 64 uniform ones.
inline std::uint64_t below(std::uint64_t count, std::uint64_t bits) {
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(bits) * count >> 64);
}

// The eligible one of `count` with the lowest cost; of equal ones each is as likely.
// `random()` gives 64 uniform bits. A cost that is not finite is passed over.
template <class Cost, class Eligible, class Random>
std::optional<std::size_t> pick_lowest(std::size_t count, Cost cost, Eligible eligible,
                                       Random random) {
  std::optional<std::size_t> best;
  double least = 0;
  std::uint64_t ties = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!eligible(i)) continue;
    const double price = cost(i);
    if (!std::isfinite(price) || (best && price > least)) continue;
    const bool tie = best && price == least;
    ties = tie ? ties + 1 : 1;
    least = price;
    // The k-th of them replaces the one kept with probability 1/k.
    if (!tie || below(ties, random()) == 0) best = i;
  }
  return best;
}

// Like pick_lowest, but a costlier candidate has a chance too, the smaller the costlier it is. A
// higher `temperature` evens the chances; the spread of the costs does not matter.
template <class Cost, class Eligible, class Random>
std::optional<std::size_t> pick_softly(std::size_t count, Cost cost, Eligible eligible,
                                       Random random, double temperature) {
  std::vector<std::pair<std::size_t, double>> rows;  // candidate, its cost and then its weight
  for (std::size_t i = 0; i < count; ++i) {
    if (!eligible(i)) continue;
    const double price = cost(i);
    if (std::isfinite(price)) rows.emplace_back(i, price);
  }
  if (rows.empty()) return std::nullopt;
  const auto [least, most] = std::ranges::minmax(
      rows, {}, [](const std::pair<std::size_t, double>& row) { return row.second; });
  const double spread = (most.second - least.second) * temperature;
  double sum = 0;
  for (auto& row : rows) {
    const double behind = row.second - least.second;
    row.second = behind > 0 ? std::exp(-behind / spread) : 1;
    sum += row.second;
  }
  double drawn = std::ldexp(static_cast<double>(random() >> 11), -53) * sum;
  for (const auto& [candidate, weight] : rows) {
    drawn -= weight;
    if (drawn < 0) return candidate;
  }
  return rows.back().first;  // rounding left a rest
}

// Temperature 0: the cheapest. nullopt where none is eligible.
template <class Cost, class Eligible, class Random>
std::optional<std::size_t> pick_cheapest(std::size_t count, Cost cost, Eligible eligible,
                                         Random random, double temperature) {
  return temperature > 0 ? pick_softly(count, cost, eligible, random, temperature)
                         : pick_lowest(count, cost, eligible, random);
}

}  // namespace baton::scheduling
