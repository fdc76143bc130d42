// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace baton::net {

// Role. The total time to wait for a peer while it takes or sends one message: an initial time, and
//   a second more for each kSlowestRate bytes that pass meanwhile and count. So a slow network
//   passes, but a peer that moves a byte now and then cannot hold a message for ever.
// Confinement. One I/O thread.
// Lifetime. One message, or the part of one between two tokens.
class PeerPatience {
 public:
  static constexpr std::size_t kSlowestRate = 16 * 1024;  // bytes a second

  explicit PeerPatience(std::chrono::milliseconds patience) : left_(within(patience.count())) {}

  std::chrono::milliseconds left() const { return std::chrono::milliseconds(left_); }
  bool over() const { return left_ == 0; }
  void spend(std::chrono::milliseconds waited, std::size_t passed) {
    const auto earned = static_cast<std::int64_t>(passed * 1000 / kSlowestRate);
    left_ = within(left_ - waited.count() + earned);
  }

 private:
  // Four bytes, for each stream has one: up to a day.
  static std::int32_t within(std::int64_t milliseconds) {
    constexpr std::int64_t kDay = std::int64_t{24} * 60 * 60 * 1000;
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(milliseconds, 0, kDay));
  }

  std::int32_t left_;  // milliseconds
};

}  // namespace baton::net
