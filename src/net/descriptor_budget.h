// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <boost/system/error_code.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

namespace baton::net {

// This machine or process lacks something that a socket needs: descriptors, local ports, memory of
// the kernel. It says nothing of the peer.
bool is_local_fault(const boost::system::error_code& error);
// The local faults that a higher limit of descriptors removes.
bool is_lack_of_descriptors(const boost::system::error_code& error);

// The number that the next descriptor will have; nullopt where there is none. `open` is any
// descriptor that is open. Two system calls.
std::optional<int> lowest_free_descriptor(int open);

// The users of connections to workers. Under shortage, Requests lose first.
enum class DescriptorUse : std::uint8_t { Requests, Control };

// Role. Shares the descriptors of the process: clients leave room for the connections to workers
//   that their requests need, requests leave room for health checks and feeds, and all of these
//   leave room for the admin address, files and logs.
// Confinement. Any thread.
// Invariants. The kernel gives the lowest free number, so a descriptor at or above a bound proves
//   that everything below the bound is in use. Each use has a bound and keeps no descriptor above
//   it, whichever use holds those below.
// Permitted imprecision. Between the look at a number and its use other threads may take
//   descriptors: each thread may exceed a bound by one.
class DescriptorBudget {
 public:
  // Called with the use that ran short, at most once in ten seconds.
  using Warn = std::function<void(std::string_view what)>;

  explicit DescriptorBudget(std::size_t limit, Warn warn = {});
  DescriptorBudget(const DescriptorBudget&) = delete;
  DescriptorBudget& operator=(const DescriptorBudget&) = delete;

  std::size_t limit() const { return limit_; }
  // Whether a connection to a worker may keep this descriptor.
  bool allows(DescriptorUse use, int descriptor) const;
  // Whether one more client may be accepted, where `clients` are there and the next descriptor is
  // `lowest_free`: each may need a connection to a prefill and one to a decode worker.
  bool has_room_for_client(std::size_t lowest_free, std::size_t clients) const;
  // How many clients fit, where Baton itself has `own` descriptors.
  std::size_t clients_that_fit(std::size_t own) const;
  // How many connections the admin address may have out of its reserve.
  std::size_t admin_connections() const;

  void went_short(std::string_view what);
  // True for some seconds after a shortage: callers then drop what only saves time.
  bool short_lately() const;

  // A connection to a worker, for as long as it is there.
  class Held {
   public:
    Held() = default;
    explicit Held(DescriptorBudget* budget) : budget_(budget) {
      if (budget_) budget_->to_workers_.fetch_add(1, std::memory_order_relaxed);
    }
    Held(Held&& other) noexcept : budget_(std::exchange(other.budget_, nullptr)) {}
    Held& operator=(Held&& other) noexcept {
      std::swap(budget_, other.budget_);
      return *this;
    }
    ~Held() {
      if (budget_) budget_->to_workers_.fetch_sub(1, std::memory_order_relaxed);
    }

   private:
    DescriptorBudget* budget_ = nullptr;
  };

 private:
  using Clock = std::chrono::steady_clock;
  std::size_t bound(DescriptorUse use) const;

  std::size_t limit_;
  std::size_t reserve_;  // of the admin address, and as much for Control
  Warn warn_;
  std::atomic<std::size_t> to_workers_{0};
  std::atomic<Clock::rep> short_until_;
  std::atomic<Clock::rep> silent_until_;
};

}  // namespace baton::net
