// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "scheduling/queue/classes.h"
#include "scheduling/queue/followers.h"
#include "scheduling/queue/gate.h"
#include "scheduling/queue/slo_record.h"
#include "config/routing.h"
#include "fleet/load_bell.h"
#include "fleet/pool.h"
#include "telemetry/metrics.h"

#include <boost/asio/any_io_executor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace baton::handoff {

// Role. Who waits for the workers of one pool, and for each other. It hears when they have less to do.
// Confinement. Any thread.
// Lifetime. Shared by the pool and whoever waits there.
class PoolGate final : public fleet::LoadListener {
 public:
  // Requires: `queue` has a class.
  PoolGate(const config::Queue& queue, const std::string& model, const std::string& name_space,
           boost::asio::any_io_executor home, telemetry::Registry& metrics);

  // That of the pool; made by the first who asks.
  static std::shared_ptr<PoolGate> of(fleet::Pool& pool, const config::Routing& routing,
                                      model::Policy policy, const std::string& model,
                                      boost::asio::any_io_executor home,
                                      telemetry::Registry& metrics);
  // The same; null where nobody has asked yet, and so nobody waits.
  static std::shared_ptr<PoolGate> find(const fleet::Pool& pool);
  // What is configured, and what the policy that chooses prefill workers adds where nothing is.
  // Without classes nobody ever waits.
  static config::Queue with_defaults(const config::Routing& routing, model::Policy policy);

  scheduling::Gate& gate() const { return *gate_; }
  // Null where nobody follows another.
  const std::shared_ptr<scheduling::Followers>& followers() const { return followers_; }

  // For a request of such a class, or family, with so many tokens to compute.
  struct ClassOf {
    const config::QueueClass& options;
    std::shared_ptr<scheduling::SloRecord> slo;  // null: it has no objective
  };
  ClassOf class_of(std::string_view policy_class, std::uint64_t uncached_tokens) const {
    const std::size_t index = classes_.resolve(policy_class, uncached_tokens);
    return {queue_.classes[index], slos_[index]};
  }

  void load_fell() override { gate_->changed(); }

 private:
  std::shared_ptr<scheduling::Gate> gate_;
  std::shared_ptr<scheduling::Followers> followers_;
  const config::Queue queue_;
  const scheduling::Classes classes_;
  std::vector<std::shared_ptr<scheduling::SloRecord>> slos_;  // by class
};

}  // namespace baton::handoff
