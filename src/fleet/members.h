// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/worker.h"
#include "routing/seat_load.h"

#include <boost/unordered/unordered_flat_map.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

namespace baton::fleet {

// Role. The workers of a set at one moment.
// Confinement. Any thread; it does not change.
class Members {
 public:
  struct Candidate {
    std::size_t worker = 0;  // of workers
    std::uint32_t rank = 0;
    std::uint32_t block_size = 0;             // as was said; 0: nobody has
    const routing::SeatLoad* load = nullptr;  // the worker's
  };

  Members() = default;
  explicit Members(std::vector<std::shared_ptr<Worker>> of);

  std::vector<std::shared_ptr<Worker>> workers;
  std::vector<Candidate> candidates;  // rank by rank, so that turns go round the workers

  const std::shared_ptr<Worker>& worker(std::size_t candidate) const {
    return workers[candidates[candidate].worker];
  }
  routing::SeatKey seat(std::size_t candidate) const {
    return {worker(candidate)->id(), candidates[candidate].rank};
  }
  // By name, host:port or number; null where there is none.
  std::shared_ptr<Worker> find(std::string_view name) const;
  // The candidate that sits there; nothing where it is none of these.
  std::optional<std::size_t> find(routing::SeatKey seat) const;

 private:
  // Made when it is first wanted: a large fleet changes often, and not every policy wants it.
  struct Index {
    std::once_flag made;
    boost::unordered_flat_map<routing::SeatKey, std::uint32_t, routing::SeatKeyHash> by_seat;
  };
  std::shared_ptr<Index> index_ = std::make_shared<Index>();
};

}  // namespace baton::fleet
