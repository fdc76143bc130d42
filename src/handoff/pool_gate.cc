// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/pool_gate.h"

#include <utility>

namespace baton::handoff {

PoolGate::PoolGate(const config::Queue& queue, const std::string& model,
                   boost::asio::any_io_executor home, telemetry::Registry& metrics) {
  if (!queue.classes.empty()) {
    gate_ = std::make_shared<admission::Gate>(queue, std::move(home),
                                              admission::GateMetrics(metrics, model, queue));
  }
  if (queue.follow_tokens > 0)
    followers_ = std::make_shared<admission::Followers>(queue.follow_tokens);
}

PoolGate& PoolGate::of(fleet::Pool& pool, const config::Queue& queue, const std::string& model,
                       boost::asio::any_io_executor home, telemetry::Registry& metrics) {
  // Nobody else listens to a pool.
  return static_cast<PoolGate&>(pool.bell().listener(
      [&] { return std::make_unique<PoolGate>(queue, model, std::move(home), metrics); }));
}

}  // namespace baton::handoff
