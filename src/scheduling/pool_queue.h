// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/routing.h"
#include "fleet/load_notifier.h"
#include "fleet/pool.h"
#include "scheduling/queue/admission_queue.h"
#include "scheduling/queue/classes.h"
#include "scheduling/queue/prefill_coalescer.h"
#include "scheduling/queue/slo_record.h"
#include "telemetry/metrics.h"

#include <boost/asio/any_io_executor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace baton::scheduling {

// Role. The requests that wait for the workers of one pool, and for each other. The pool notifies
//   it when its workers have less load.
// Confinement. Any thread.
// Lifetime. Shared by the pool and the waiting requests.
class PoolQueue final : public fleet::LoadListener {
 public:
  // Requires: `queue` has a class.
  PoolQueue(const config::Queue& queue, const std::string& model, const std::string& name_space,
            boost::asio::any_io_executor home, telemetry::Registry& metrics);

  // The queue of the pool; made at the first call.
  static std::shared_ptr<PoolQueue> of(fleet::Pool& pool, const config::Routing& routing,
                                       model::Policy policy, const std::string& model,
                                       boost::asio::any_io_executor home,
                                       telemetry::Registry& metrics);
  // Returns an existing queue; null if none was created yet, so that no request waits.
  static std::shared_ptr<PoolQueue> find(const fleet::Pool& pool);
  // The configuration, completed by the defaults of the policy that chooses prefill workers.
  // Without classes no request ever waits.
  static config::Queue with_defaults(const config::Routing& routing, model::Policy policy);

  AdmissionQueue& admission() const { return *admission_; }
  // Null if requests are not coalesced.
  const std::shared_ptr<PrefillCoalescer>& coalescer() const { return coalescer_; }

  // For a request of such a class, or family, with so many tokens to compute.
  struct ClassOf {
    const config::QueueClass& options;
    std::shared_ptr<SloRecord> slo;  // null: it has no objective
  };
  ClassOf class_of(std::string_view policy_class, std::uint64_t uncached_tokens) const {
    const std::size_t index = classes_.resolve(policy_class, uncached_tokens);
    return {queue_.classes[index], slos_[index]};
  }

  void load_fell() override { admission_->changed(); }

 private:
  std::shared_ptr<AdmissionQueue> admission_;
  std::shared_ptr<PrefillCoalescer> coalescer_;
  const config::Queue queue_;
  const Classes classes_;
  std::vector<std::shared_ptr<SloRecord>> slos_;  // by class
};

}  // namespace baton::scheduling
