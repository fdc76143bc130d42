// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/worker.h"
#include "model/engine_set.h"
#include "scheduling/policy/pace.h"
#include "scheduling/policy/rank_load.h"
#include "scheduling/policy/transfer_pace.h"

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
  // The fields that are read for each prompt lie together here: there may be thousands. The worker
  // owns what it points to.
  struct Candidate {
    scheduling::RankKey key;
    std::uint32_t worker = 0;      // of workers
    std::uint32_t block_size = 0;  // as announced; 0: unknown
    const scheduling::RankLoad* load = nullptr;
    const scheduling::SiblingPace* siblings = nullptr;
    const scheduling::TransferPace* usual_transfers = nullptr;

    scheduling::PrefillSpeed speed(scheduling::Time now) const {
      return scheduling::speed_of(load->prefill_speed(), siblings, now);
    }
    // The common speed of its kind.
    scheduling::PrefillSpeed usual_speed() const {
      return siblings != nullptr
                 ? siblings->speed()
                 : load->prefill_speed().load().value_or(scheduling::kUnmeasuredSpeed);
    }
    double transfer_seconds(double tokens, scheduling::Time now) const {
      return scheduling::TransferPace::seconds(load->transfer_speed(), usual_transfers, tokens,
                                               now);
    }
  };

  Members() = default;
  explicit Members(std::vector<std::shared_ptr<Worker>> of);

  std::vector<std::shared_ptr<Worker>> workers;
  model::EngineSet engines;
  std::vector<Candidate> candidates;  // rank by rank, so that turns go round the workers

  const std::shared_ptr<Worker>& worker(std::size_t candidate) const {
    return workers[candidates[candidate].worker];
  }
  // By name, host:port or number; null where there is none.
  std::shared_ptr<Worker> find(std::string_view name) const;
  // The candidate of that rank; nothing if it is none of these. `guess`: where to look first.
  std::optional<std::size_t> find(scheduling::RankKey key, std::size_t guess = 0) const {
    if (guess < candidates.size() && candidates[guess].key == key) return guess;
    return look_up(key);
  }

 private:
  // Made when it is first wanted: a large fleet changes often, and not every policy wants it.
  struct Index {
    std::once_flag made;
    boost::unordered_flat_map<scheduling::RankKey, std::uint32_t, scheduling::RankKeyHash> by_key;
  };
  std::optional<std::size_t> look_up(scheduling::RankKey key) const;

  std::shared_ptr<Index> index_ = std::make_shared<Index>();
};

}  // namespace baton::fleet
