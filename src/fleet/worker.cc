// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/worker.h"

#include "fleet/lifecycle.h"
#include "routing/constraints.h"

namespace baton::fleet {

Worker::Worker(model::WorkerId id, model::WorkerSpec spec, telemetry::Gauge& in_flight_gauge)
    : id_(id),
      spec_(std::move(spec)),
      authority_(spec_.endpoint.to_string()),
      number_(std::to_string(id_.value)),
      taints_(spec_.taints),
      in_flight_gauge_(in_flight_gauge),
      in_flight_(std::make_unique<std::atomic<std::int64_t>[]>(spec_.data_parallel_size)) {
  for (const std::string& place : spec_.topology) taints_.push_back(routing::topology_taint(place));
}

bool Worker::is_called(std::string_view text) const {
  return text == name() || text == authority_ || text == number_;
}

std::int64_t Worker::in_flight() const {
  std::int64_t sum = 0;
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) sum += in_flight(rank);
  return sum;
}

void Worker::set_availability(Availability now) {
  const Availability before = availability_.exchange(now, std::memory_order_acq_rel);
  if (before != now && lifecycle_ != nullptr) lifecycle_->observe(now);
}

}  // namespace baton::fleet
