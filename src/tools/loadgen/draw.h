// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>

namespace baton::loadgen {

// A number that looks random and is a function of its input (SplitMix64's finisher).
constexpr std::uint64_t mixed(std::uint64_t z) {
  z += 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31U);
}

constexpr std::uint64_t mixed(std::initializer_list<std::uint64_t> parts) {
  std::uint64_t all = 0;
  for (const std::uint64_t part : parts) all = mixed(all ^ part);
  return all;
}

// Role. A sequence of random numbers that is the same everywhere: the standard library's
//   distributions differ from one to the next.
// Confinement. One thread.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() { return mixed(state_++); }
  // At least 0, below 1.
  double unit() { return static_cast<double>(bits() >> 11U) * 0x1.0p-53; }
  // At least 0, below `bound`. Requires: bound > 0.
  std::uint64_t below(std::uint64_t bound) { return bits() % bound; }
  bool chance(double share) { return unit() < share; }
  double exponential(double mean) { return -mean * std::log1p(-unit()); }
  // Around 0, with deviation 1.
  double normal() {
    const double radius = std::sqrt(-2 * std::log1p(-unit()));
    return radius * std::cos(2 * 3.141592653589793 * unit());
  }

 private:
  std::uint64_t state_;
};

}  // namespace baton::loadgen
