// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "model/worker.h"
#include "routing/affinity.h"
#include "telemetry/metrics.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace baton::fleet {

class Lifecycle;

// Unknown: nobody has tried yet. A worker that is Down gets no request.
enum class Availability { Unknown, Up, Down };

// Role. One engine server and what Baton has running on it.
// Confinement. Any thread; load and availability are atomic, the rest does not change.
class Worker {
 public:
  Worker(model::WorkerId id, model::WorkerSpec spec, telemetry::Gauge& in_flight_gauge);

  model::WorkerId id() const { return id_; }
  const model::WorkerSpec& spec() const { return spec_; }
  const std::string& authority() const { return authority_; }  // host:port
  // Its id in the configuration, or host:port.
  const std::string& name() const { return spec_.name.empty() ? authority_ : spec_.name; }
  // Whether `text` is its name, host:port or number.
  bool is_called(std::string_view text) const;
  // What it was given, and where it is.
  std::span<const std::string> taints() const { return taints_; }
  std::uint32_t ranks() const { return spec_.data_parallel_size; }
  std::int64_t in_flight() const;
  // Requires: rank < ranks().
  std::int64_t in_flight(std::uint32_t rank) const {
    return in_flight_[rank].load(std::memory_order_relaxed);
  }

  Availability availability() const { return availability_.load(std::memory_order_relaxed); }
  // Whoever saw it tells. A prefill worker's change is one of its model's lifecycle, too.
  void set_availability(Availability now);
  void watched_by(Lifecycle& lifecycle) { lifecycle_ = &lifecycle; }

 private:
  friend class Booking;
  void change_load(std::uint32_t rank, std::int64_t by) {
    in_flight_[rank].fetch_add(by, std::memory_order_relaxed);
    in_flight_gauge_.add(by);
  }

  model::WorkerId id_;
  model::WorkerSpec spec_;
  std::string authority_;
  std::string number_;
  std::vector<std::string> taints_;
  telemetry::Gauge& in_flight_gauge_;
  Lifecycle* lifecycle_ = nullptr;
  std::atomic<Availability> availability_{Availability::Unknown};
  std::unique_ptr<std::atomic<std::int64_t>[]> in_flight_;  // by rank
};

// A request counted on a worker, and on one of its ranks, for as long as this lives.
class Booking {
 public:
  Booking() = default;
  // Requires: rank < worker.ranks().
  explicit Booking(Worker& worker, std::uint32_t rank = 0) : worker_(&worker), rank_(rank) {
    worker_->change_load(rank_, 1);
  }
  Booking(Booking&& other) noexcept
      : worker_(std::exchange(other.worker_, nullptr)), rank_(other.rank_) {}
  Booking& operator=(Booking&& other) noexcept {
    std::swap(worker_, other.worker_);
    std::swap(rank_, other.rank_);
    return *this;
  }
  ~Booking() {
    if (worker_) worker_->change_load(rank_, -1);
  }

  // The following require: made from a worker and not moved from.
  Worker& worker() const { return *worker_; }
  // Nothing where the worker has only one: then nobody need be told.
  std::optional<std::uint32_t> rank() const {
    return worker_->ranks() > 1 ? std::optional(rank_) : std::nullopt;
  }
  routing::Seat seat() const { return {worker_->id(), rank()}; }

 private:
  Worker* worker_ = nullptr;
  std::uint32_t rank_ = 0;
};

}  // namespace baton::fleet
