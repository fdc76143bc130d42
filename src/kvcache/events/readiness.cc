// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/readiness.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

namespace baton::kvcache {
namespace {

constexpr std::size_t kEvents = 256;
constexpr std::int64_t kLongestWaitMs = 60'000;
// Bounds the turns of ready sources, so that a wake-up is soon handled.
constexpr std::size_t kTurns = 16;

}  // namespace

Readiness::Readiness()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (epoll_ < 0 || wake_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot wait for KV events");
}

Readiness::~Readiness() {
  close(wake_);
  close(epoll_);
}

bool Readiness::add(int descriptor, Source& source) {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = &source}};
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) return false;
  make_ready(source);
  return true;
}

void Readiness::remove(int descriptor, Source& source) {
  epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
  if (queued_.erase(&source) != 0) std::erase(ready_, &source);
}

void Readiness::make_ready(Source& source) {
  if (queued_.insert(&source).second) ready_.push_back(&source);
}

void Readiness::set_time(Source& source, std::optional<Time> time) {
  const auto known = time_of_.find(&source);
  if (known != time_of_.end()) {
    if (time == known->second) return;
    times_.erase({known->second, &source});
    time_of_.erase(known);
  }
  if (!time) return;
  times_.emplace(*time, &source);
  time_of_.emplace(&source, *time);
}

int Readiness::wait_ms() const {
  if (!ready_.empty()) return 0;
  if (times_.empty()) return -1;
  const auto left = times_.begin()->first - std::chrono::steady_clock::now();
  // Rounded up: one that is called too early would only wait again.
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<std::int64_t>(wait, 0, kLongestWaitMs));
}

void Readiness::run_once() {
  std::array<epoll_event, kEvents> events{};
  const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), wait_ms());
  for (int i = 0; i < count; ++i) {
    if (auto* source = static_cast<Source*>(events[static_cast<std::size_t>(i)].data.ptr)) {
      make_ready(*source);
    } else {
      std::uint64_t woken = 0;
      [[maybe_unused]] const auto size = read(wake_, &woken, sizeof(woken));
    }
  }
  // A source's work may remove others, so each is looked up only at its turn.
  for (std::size_t turns = std::min(ready_.size(), kTurns); turns > 0 && !ready_.empty(); --turns) {
    Source* source = ready_.front();
    ready_.pop_front();
    queued_.erase(source);
    if (source->work()) make_ready(*source);
  }
  const Time now = std::chrono::steady_clock::now();
  while (!times_.empty() && times_.begin()->first <= now) {
    Source* source = times_.begin()->second;
    set_time(*source, std::nullopt);
    source->on_time();
  }
}

void Readiness::wake() {
  const std::uint64_t once = 1;
  [[maybe_unused]] const auto size = write(wake_, &once, sizeof(once));
}

}  // namespace baton::kvcache
