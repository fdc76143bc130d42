// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "model/worker.h"
#include "telemetry/metrics.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

namespace baton::fleet {

// Role. One engine server and what Baton has running on it.
// Confinement. Any thread; load is atomic, the rest does not change.
class Worker {
 public:
  Worker(model::WorkerId id, model::WorkerSpec spec, telemetry::Gauge& in_flight_gauge)
      : id_(id),
        spec_(std::move(spec)),
        authority_(spec_.endpoint.to_string()),
        in_flight_gauge_(in_flight_gauge) {}

  model::WorkerId id() const { return id_; }
  const model::WorkerSpec& spec() const { return spec_; }
  const std::string& authority() const { return authority_; }  // host:port
  std::int64_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }

 private:
  friend class Booking;
  void change_load(std::int64_t by) {
    in_flight_.fetch_add(by, std::memory_order_relaxed);
    in_flight_gauge_.add(by);
  }

  model::WorkerId id_;
  model::WorkerSpec spec_;
  std::string authority_;
  telemetry::Gauge& in_flight_gauge_;
  std::atomic<std::int64_t> in_flight_{0};
};

// A request counted on a worker for as long as this lives.
class Booking {
 public:
  Booking() = default;
  explicit Booking(Worker& worker) : worker_(&worker) { worker_->change_load(1); }
  Booking(Booking&& other) noexcept : worker_(std::exchange(other.worker_, nullptr)) {}
  Booking& operator=(Booking&& other) noexcept {
    std::swap(worker_, other.worker_);
    return *this;
  }
  ~Booking() {
    if (worker_) worker_->change_load(-1);
  }

  // Requires: made from a worker and not moved from.
  const Worker& worker() const { return *worker_; }

 private:
  Worker* worker_ = nullptr;
};

}  // namespace baton::fleet
