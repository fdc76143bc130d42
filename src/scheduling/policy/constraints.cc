// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/constraints.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace baton::scheduling {
namespace {

bool has(std::span<const std::string> taints, std::string_view wanted) {
  return std::ranges::find(taints, wanted) != taints.end();
}

}  // namespace

bool Constraints::satisfied_by(std::span<const std::string> taints) const {
  return std::ranges::all_of(required,
                             [taints](const std::string& one) { return has(taints, one); });
}

double Constraints::preference(std::span<const std::string> taints) const {
  if (preferred.empty()) return 1;
  double sum = 0;
  for (const auto& [taint, weight] : preferred) {
    if (has(taints, taint)) sum += weight;
  }
  return std::exp(-std::tanh(sum));
}

void Constraints::merge(const Constraints& other) {
  for (const std::string& taint : other.required) {
    if (!has(required, taint)) required.push_back(taint);
  }
  for (const auto& [taint, weight] : other.preferred) {
    const auto known = std::ranges::find(preferred, taint, &std::pair<std::string, double>::first);
    if (known == preferred.end()) {
      preferred.emplace_back(taint, weight);
    } else {
      known->second += weight;
    }
  }
}

std::string topology_taint(std::string_view place) {
  return fmt::format("baton.topology/{}", place);
}

Result<Constraints> transfer_constraints(const model::WorkerSpec& prefill) {
  Constraints constraints;
  if (!prefill.transfer_domain) return constraints;
  const model::TransferDomain& domain = *prefill.transfer_domain;
  const auto lacking = [&](std::string_view what) {
    return fail(Errc::NoEligibleWorker,
                fmt::format("prefill worker {} has a transfer domain without {}",
                            prefill.endpoint.to_string(), what));
  };
  if (domain.name.empty()) return lacking("a name");
  if (domain.value.empty()) return lacking(fmt::format("a value for {}", domain.name));
  std::string taint = topology_taint(fmt::format("{}={}", domain.name, domain.value));
  if (domain.enforcement == model::Enforcement::Required) {
    constraints.required.push_back(std::move(taint));
  } else {
    if (domain.weight == 0) return lacking("the weight that preferred needs");
    constraints.preferred.emplace_back(std::move(taint), domain.weight);
  }
  return constraints;
}

}  // namespace baton::scheduling
