// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "net/descriptor_budget.h"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <limits>
#include <unistd.h>

namespace baton::net {
namespace {

namespace errc = boost::system::errc;

constexpr std::size_t kSmallestReserve = 8;
constexpr std::size_t kLargestReserve = 320;
constexpr std::size_t kReserves = 8;  // of the limit: one part in so many
// The rest of the reserve is for files, logs and inherited descriptors.
constexpr std::size_t kAdminPart = 4;
constexpr std::size_t kReserveParts = 5;
// A prefill and a decode worker.
constexpr std::size_t kPerClient = 2;
constexpr std::chrono::seconds kShortFor{10};
constexpr std::chrono::seconds kWarnEvery{10};

}  // namespace

bool is_lack_of_descriptors(const boost::system::error_code& error) {
  return error == errc::too_many_files_open || error == errc::too_many_files_open_in_system;
}

bool is_local_fault(const boost::system::error_code& error) {
  // The last one: epoll watches too many already.
  constexpr std::array kLacks{errc::no_buffer_space, errc::not_enough_memory,
                              errc::address_not_available, errc::no_space_on_device};
  return is_lack_of_descriptors(error) ||
         std::ranges::any_of(kLacks, [&](errc::errc_t lack) { return error == lack; });
}

std::optional<int> lowest_free_descriptor(int open) {
  const int found = ::fcntl(open, F_DUPFD_CLOEXEC, 0);
  if (found < 0) return std::nullopt;
  ::close(found);
  return found;
}

DescriptorBudget::DescriptorBudget(std::size_t limit, Warn warn)
    : limit_(limit),
      reserve_(std::clamp(limit / kReserves, kSmallestReserve, kLargestReserve)),
      warn_(std::move(warn)),
      short_until_(std::numeric_limits<Clock::rep>::min()),
      silent_until_(std::numeric_limits<Clock::rep>::min()) {}

std::size_t DescriptorBudget::bound(DescriptorUse use) const {
  const std::size_t reserved = use == DescriptorUse::Control ? reserve_ : 2 * reserve_;
  return limit_ > reserved ? limit_ - reserved : 0;
}

bool DescriptorBudget::allows(DescriptorUse use, int descriptor) const {
  return descriptor >= 0 && static_cast<std::size_t>(descriptor) < bound(use);
}

bool DescriptorBudget::has_room_for_client(std::size_t lowest_free, std::size_t clients) const {
  const std::size_t to_workers = to_workers_.load(std::memory_order_relaxed);
  // Holes below hide descriptors in use above them; these are known to exist.
  const std::size_t used = std::max(lowest_free, clients + to_workers);
  const std::size_t wanted = kPerClient * (clients + 1);
  const std::size_t missing = wanted > to_workers ? wanted - to_workers : 0;
  return used + missing < bound(DescriptorUse::Requests);
}

std::size_t DescriptorBudget::clients_that_fit(std::size_t own) const {
  const std::size_t all = bound(DescriptorUse::Requests);
  return all > own ? (all - own) / (1 + kPerClient) : 0;
}

std::size_t DescriptorBudget::admin_connections() const {
  return reserve_ * kAdminPart / kReserveParts;
}

void DescriptorBudget::went_short(std::string_view what) {
  const Clock::time_point now = Clock::now();
  short_until_.store((now + kShortFor).time_since_epoch().count(), std::memory_order_relaxed);
  Clock::rep silent = silent_until_.load(std::memory_order_relaxed);
  if (!warn_ || now.time_since_epoch().count() < silent) return;
  const Clock::rep next = (now + kWarnEvery).time_since_epoch().count();
  if (silent_until_.compare_exchange_strong(silent, next, std::memory_order_relaxed)) warn_(what);
}

bool DescriptorBudget::short_lately() const {
  return Clock::now().time_since_epoch().count() < short_until_.load(std::memory_order_relaxed);
}

}  // namespace baton::net
