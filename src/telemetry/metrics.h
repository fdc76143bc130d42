// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/locks/mutex.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::telemetry {

using Labels = std::vector<std::pair<std::string, std::string>>;

// Threads write to their own cache line, so counting never makes two I/O threads wait for each
// other.
inline constexpr std::size_t kSlots = 8;
std::size_t thread_slot();

class Counter {
 public:
  void add(std::uint64_t n = 1) {
    slots_[thread_slot()].value.fetch_add(n, std::memory_order_relaxed);
  }
  std::uint64_t value() const;

 private:
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> value{0};
  };
  std::array<Slot, kSlots> slots_;
};

class Gauge {
 public:
  void add(std::int64_t n) { value_.fetch_add(n, std::memory_order_relaxed); }
  void set(std::int64_t n) { value_.store(n, std::memory_order_relaxed); }
  std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

// A gauge from 0 to 1.
class Share {
 public:
  void set(double share) { value_.store(share, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

class Histogram {
 public:
  // Upper bounds in seconds (or whatever unit the name says), ascending, without +Inf.
  explicit Histogram(std::span<const double> bounds);
  ~Histogram();
  void observe(double value);

  struct Snapshot {
    std::vector<double> bounds;
    std::vector<std::uint64_t> cumulative;  // one per bound, then +Inf
    double sum = 0;
    std::uint64_t count = 0;
  };
  Snapshot snapshot() const;

 private:
  struct Slot;
  std::vector<double> bounds_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

// Default bounds for durations from 100 µs to 10 min.
std::span<const double> duration_bounds();

// Role. Owns every metric and writes them in Prometheus' text format.
// Confinement. Any thread; creating a metric takes a lock, using one does not.
// Lifetime. Owned by app::Services; references it hands out live as long as it does.
// Invariants. Same name and labels → same metric; one name has one type and one help text (a second
//   one is a mistake in our code and throws std::logic_error).
class Registry {
 public:
  Registry();
  ~Registry();
  Counter& counter(std::string_view name, std::string_view help, Labels labels = {});
  // A counter that its owner counts and that outlives the registry.
  void counter(std::string_view name, std::string_view help, const Counter& counted);
  Gauge& gauge(std::string_view name, std::string_view help, Labels labels = {});
  Share& share(std::string_view name, std::string_view help, Labels labels = {});
  Histogram& histogram(std::string_view name, std::string_view help, Labels labels = {},
                       std::span<const double> bounds = duration_bounds());
  // Series that are written while they are held. Equal names and labels share one.
  std::shared_ptr<Counter> held_counter(std::string_view name, std::string_view help,
                                        Labels labels);
  std::shared_ptr<Share> held_share(std::string_view name, std::string_view help, Labels labels);
  // A metric whose series come and go: each render calls `collect` for the present ones. It must
  // not use the registry.
  using Emit = std::function<void(const Labels& labels, std::int64_t value)>;
  void collect(std::string_view name, std::string_view help,
               std::function<void(const Emit&)> collect);
  // The same for counters.
  void collect_counts(std::string_view name, std::string_view help,
                      std::function<void(const Emit&)> collect);
  std::string render() const;

  // Name, type and help of every metric known, in order of name. For documentation and its test.
  struct Description {
    std::string name;
    std::string type;
    std::string help;
  };
  std::vector<Description> describe() const;

 private:
  struct Family;
  Family& family(std::string_view name, std::string_view help, std::string_view type)
      REQUIRES(mutex_);
  template <class Metric, class... Args>
  Metric& series(std::string_view name, std::string_view help, Labels labels, const Args&... args);
  template <class Metric>
  std::shared_ptr<Metric> held_series(std::string_view name, std::string_view help, Labels labels);

  mutable locks::Mutex mutex_;
  std::vector<std::unique_ptr<Family>> families_ GUARDED_BY(mutex_);
};

}  // namespace baton::telemetry
