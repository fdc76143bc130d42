// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http_client/upstream_pool.h"

#include <chrono>
#include <utility>

namespace baton::http_client {
namespace {

constexpr std::chrono::seconds kSweepEvery{5};

}  // namespace

UpstreamPool::UpstreamPool(boost::asio::io_context& io, net::Deadlines& deadlines,
                           PoolOptions options)
    : deadlines_(deadlines),
      sweep_(deadlines, [this] { sweep(); }),
      options_(std::move(options)),
      connector_(io, deadlines, options_, [this] { return drop_idle(); }) {
  sweep_.arm(kSweepEvery);
}

// Workers close long idle connections; half-closed connections would waste descriptors.
void UpstreamPool::sweep() {
  for (auto& [worker, idle] : idle_) {
    std::erase_if(idle, [](const auto& upstream) { return upstream->connection.stale(); });
  }
  // Those of other threads cannot make room when a request needs it.
  if (options_.descriptors && options_.descriptors->short_lately()) idle_.clear();
  std::erase_if(idle_, [](const auto& known) { return known.second.empty(); });
  sweep_.arm(kSweepEvery);
}

std::size_t UpstreamPool::idle_count() const {
  std::size_t count = 0;
  for (const auto& [worker, idle] : idle_) count += idle.size();
  return count;
}

std::unique_ptr<Upstream> UpstreamPool::take_idle(const Target& target) {
  const auto found = idle_.find(target.id.value);
  if (found == idle_.end()) return nullptr;
  auto& idle = found->second;
  while (!idle.empty()) {
    std::unique_ptr<Upstream> upstream = std::move(idle.back());
    idle.pop_back();
    if (!upstream->connection.stale()) return upstream;
  }
  return nullptr;
}

void UpstreamPool::give_back(model::WorkerId worker, std::unique_ptr<Upstream> upstream) {
  if (shut_down_ || options_.idle_per_worker == 0) return;
  auto& idle = idle_[worker.value];
  if (idle.size() >= options_.idle_per_worker) return;
  upstream->parser.next();
  idle.push_back(std::move(upstream));
}

bool UpstreamPool::drop_idle() {
  for (auto it = idle_.begin(); it != idle_.end(); it = idle_.erase(it)) {
    auto& idle = it->second;
    if (idle.empty()) continue;
    idle.erase(idle.begin());
    return true;
  }
  return false;
}

void UpstreamPool::shut_down() {
  shut_down_ = true;
  connector_.shut_down();
  idle_.clear();
  for (auto it = holders_.begin(); it != holders_.end();) (it++)->drop();
}

}  // namespace baton::http_client
