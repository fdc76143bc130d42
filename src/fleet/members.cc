// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/members.h"

#include <algorithm>
#include <utility>

namespace baton::fleet {

Members::Members(std::vector<std::shared_ptr<Worker>> of) : workers(std::move(of)) {
  std::uint32_t most = 0;
  std::size_t all = 0;
  for (const auto& worker : workers) {
    most = std::max(most, worker->ranks());
    all += worker->ranks();
    engines.add(worker->spec().engine);
  }
  candidates.reserve(all);
  for (std::uint32_t rank = 0; rank < most; ++rank) {
    for (std::size_t i = 0; i < workers.size(); ++i) {
      const Worker& worker = *workers[i];
      if (rank >= worker.ranks()) continue;
      candidates.push_back({.key = {worker.id(), rank},
                            .worker = static_cast<std::uint32_t>(i),
                            .block_size = worker.spec().block_size.value_or(0),
                            .load = worker.load(rank).get(),
                            .siblings = worker.siblings().pace.get(),
                            .usual_transfers = worker.siblings().transfers.get()});
    }
  }
}

std::shared_ptr<Worker> Members::find(std::string_view name) const {
  // A name wins over a number that another worker happens to have.
  for (const auto& worker : workers) {
    if (worker->name() == name) return worker;
  }
  for (const auto& worker : workers) {
    if (worker->is_called(name)) return worker;
  }
  return nullptr;
}

std::optional<std::size_t> Members::look_up(scheduling::RankKey key) const {
  std::call_once(index_->made, [this] {
    index_->by_key.reserve(candidates.size());
    for (std::size_t i = 0; i < candidates.size(); ++i)
      index_->by_key.emplace(candidates[i].key, static_cast<std::uint32_t>(i));
  });
  const auto found = index_->by_key.find(key);
  if (found == index_->by_key.end()) return std::nullopt;
  return found->second;
}

}  // namespace baton::fleet
