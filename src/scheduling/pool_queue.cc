// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/pool_queue.h"

#include <chrono>
#include <utility>

namespace baton::scheduling {

PoolQueue::PoolQueue(const config::Queue& queue, const std::string& model,
                     const std::string& name_space, boost::asio::any_io_executor home,
                     telemetry::Registry& metrics)
    : admission_(std::make_shared<AdmissionQueue>(queue, std::move(home),
                                                  QueueMetrics(metrics, model, queue))),
      queue_(queue),
      classes_(queue_) {
  for (const config::QueueClass& one : queue.classes) {
    slos_.push_back(
        one.slo ? std::make_shared<SloRecord>(*one.slo, metrics, model, name_space, one.name)
                : nullptr);
  }
  if (queue.follow_tokens.value_or(0) == 0) return;
  const auto wake = [queue = std::weak_ptr(admission_)] {
    if (const auto waiting = queue.lock()) waiting->changed();
  };
  coalescer_ = std::make_shared<PrefillCoalescer>(*queue.follow_tokens, wake);
}

config::Queue PoolQueue::with_defaults(const config::Routing& routing, model::Policy policy) {
  config::Queue queue = routing.queue;
  constexpr std::uint64_t kFollowed = 1024;
  constexpr std::size_t kMostWaiting = 1000;
  const bool forecasts = policy == model::Policy::Ttft;
  if (forecasts && queue.classes.empty()) {
    // A request sent to a worker cannot move to another; so none is sent before its time, and short
    // ones go first.
    config::QueueClass& only = queue.classes.emplace_back();
    only.name = "default";
    only.order = config::QueueOrder::Shortest;
    only.late = true;
    only.requests_per_worker = kMostWaiting;
  }
  if (!queue.follow_tokens) queue.follow_tokens = forecasts ? kFollowed : 0;
  // No request waits for workers there; but one that follows another needs a queue to wait in.
  if (queue.classes.empty() && (*queue.follow_tokens > 0 || routing.slo))
    queue.classes.emplace_back().name = "default";
  for (config::QueueClass& one : queue.classes) {
    if (!one.slo) one.slo = routing.slo;
    // Until a request is sent, the queue can tell whether it will be late.
    if (one.slo && forecasts) one.late = true;
  }
  return queue;
}

std::shared_ptr<PoolQueue> PoolQueue::of(fleet::Pool& pool, const config::Routing& routing,
                                         model::Policy policy, const std::string& model,
                                         boost::asio::any_io_executor home,
                                         telemetry::Registry& metrics) {
  // A pool has no other listener.
  return std::static_pointer_cast<PoolQueue>(pool.listener([&] {
    return std::make_shared<PoolQueue>(with_defaults(routing, policy), model, pool.name(),
                                       std::move(home), metrics);
  }));
}

std::shared_ptr<PoolQueue> PoolQueue::find(const fleet::Pool& pool) {
  return std::static_pointer_cast<PoolQueue>(pool.listener());
}

}  // namespace baton::scheduling
