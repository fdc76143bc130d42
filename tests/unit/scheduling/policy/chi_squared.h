// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace baton::scheduling {

// How far counts are from what was expected. Below chi_squared_limit(counts.size()) in all but one of 10,000
// fair draws.
inline double chi_squared(const std::vector<int>& counts, const std::vector<double>& expected) {
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    sum += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
  }
  return sum;
}

inline double chi_squared_limit(std::size_t classes) {
  // Wilson and Hilferty: the cube root is nearly normal.
  const auto freedom = static_cast<double>(classes - 1);
  const double third = 2.0 / 9.0 / freedom;
  return freedom * std::pow(1 - third + 3.719 * std::sqrt(third), 3);
}

}  // namespace baton::scheduling
