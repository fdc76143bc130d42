// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/worker_set.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace baton::fleet {

WorkerSet::WorkerSet(model::Role role, model::Policy policy, config::Cost cost,
                     std::shared_ptr<LoadNotifier> load_notifier,
                     std::shared_ptr<Forecasts> forecasts, std::chrono::milliseconds itl)
    : role_(role),
      policy_(policy),
      cost_(cost),
      ledger_(std::make_shared<scheduling::LoadLedger>()),
      load_notifier_(std::move(load_notifier)),
      forecasts_(std::move(forecasts)),
      itl_(itl),
      selector_(policy) {}

void WorkerSet::add(std::shared_ptr<Worker> worker) {
  std::vector<std::shared_ptr<Worker>> workers = members()->workers;
  workers.push_back(std::move(worker));
  members_.set(Members(std::move(workers)));
  if (load_notifier_) load_notifier_->ring();
}

void WorkerSet::remove(const Worker& worker) {
  std::vector<std::shared_ptr<Worker>> workers = members()->workers;
  std::erase_if(workers, [&worker](const auto& one) { return one.get() == &worker; });
  members_.set(Members(std::move(workers)));
  if (load_notifier_) load_notifier_->ring();
}

std::shared_ptr<Worker> WorkerSet::find(std::string_view name) const {
  return members()->find(name);
}

bool WorkerSet::any_available() const {
  const Time now = Clock::now();
  const auto members = this->members();
  return std::ranges::any_of(members->workers, [now](const auto& worker) {
    // One on trial is there: whether it is well will be known in a moment.
    return worker->tier(now) <= EligibilityTier::Spare ||
           (worker->condition() == Condition::OnTrial && !worker->draining());
  });
}

std::optional<std::int64_t> WorkerSet::free_places() const {
  if (itl_ == std::chrono::milliseconds(0)) return std::nullopt;
  const Time now = Clock::now();
  const auto members = this->members();
  std::optional<std::int64_t> places;
  for (const Members::Candidate& one : members->candidates) {
    const Worker& worker = *members->workers[one.worker];
    if (worker.tier(now) > EligibilityTier::Spare) continue;
    const std::int64_t most = worker.batch_limit(one.key.rank).most();
    if (most == scheduling::BatchLimit::kUnlimited) return std::nullopt;
    places = places.value_or(0) + std::max<std::int64_t>(0, most - one.load->requests());
  }
  return places;
}

}  // namespace baton::fleet
