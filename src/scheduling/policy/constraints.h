// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "model/worker.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::scheduling {

// A request's demands on a worker's taints.
struct Constraints {
  std::vector<std::string> required;                      // all of them, or not this worker
  std::vector<std::pair<std::string, double>> preferred;  // taint → weight; below 0: rather not

  bool empty() const { return required.empty() && preferred.empty(); }
  bool satisfied_by(std::span<const std::string> taints) const;
  // Factor on the cost of a worker: from 1/e (strongly preferred) over 1 to e.
  double preference(std::span<const std::string> taints) const;
  // Adds what `other` asks; weights of a taint in both add up.
  void merge(const Constraints& other);
  bool operator==(const Constraints&) const = default;
};

// The taint of a worker whose topology has `place`, as rack=r7.
std::string topology_taint(std::string_view place);

// The demands of a prefill worker's transfer domain on the decode worker; none without a domain. An
// incomplete domain is an error: failing is better than sending a cache across the world.
Result<Constraints> transfer_constraints(const model::WorkerSpec& prefill);

}  // namespace baton::scheduling
