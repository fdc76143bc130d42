// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "admission/followers.h"
#include "admission/gate.h"
#include "config/routing.h"
#include "fleet/load_bell.h"
#include "fleet/pool.h"
#include "telemetry/metrics.h"

#include <boost/asio/any_io_executor.hpp>

#include <memory>
#include <string>

namespace baton::handoff {

// Role. Who waits for the workers of one pool. It hears when they have less to do.
// Confinement. Any thread.
// Lifetime. Owned by the pool's bell: as long as anything is booked there.
class PoolGate final : public fleet::LoadListener {
 public:
  PoolGate(const config::Queue& queue, const std::string& model, boost::asio::any_io_executor home,
           telemetry::Registry& metrics);

  // That of the pool; made by the first who asks.
  static PoolGate& of(fleet::Pool& pool, const config::Queue& queue, model::Policy policy,
                      const std::string& model, boost::asio::any_io_executor home,
                      telemetry::Registry& metrics);
  // What is configured, and what the policy that chooses prefill workers adds where nothing is.
  static config::Queue with_defaults(config::Queue queue, model::Policy policy);

  // Null where nobody waits.
  const std::shared_ptr<admission::Gate>& gate() const { return gate_; }
  const std::shared_ptr<admission::Followers>& followers() const { return followers_; }

  void load_fell() override {
    if (gate_) gate_->changed();
  }

 private:
  std::shared_ptr<admission::Gate> gate_;
  std::shared_ptr<admission::Followers> followers_;
};

}  // namespace baton::handoff
