// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "routing/transfer_pace.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace baton::routing {
namespace {

// Before so many a worker's own are too few to tell chance from distance.
constexpr std::uint64_t kEnough = 5;
// Nothing counts for more than so many times of what was expected: a decode worker may have been busy.
constexpr double kOutlier = 4;
// Part of what is common that is taken for chance.
constexpr double kChance = 0.25;

}  // namespace

TransferPace::TransferPace(std::shared_ptr<TransferPace> common) : common_(std::move(common)) {}

void TransferPace::took(std::uint64_t tokens, double seconds) {
  if (common_) common_->took(tokens, seconds);
  const auto length = static_cast<double>(tokens);
  const std::lock_guard lock(mutex_);
  const bool known = fit_.measured() >= kEnough;
  if (known) seconds = std::min(seconds, kOutlier * line_.load().seconds(length));
  fit_.add(1, length, std::max(0.0, seconds));
  line_.store(fit_.speed({}));
  if (fit_.measured() >= kEnough) measured_.store(true, std::memory_order_release);
}

double TransferPace::seconds(double tokens) const {
  const double usual = common_ ? common_->seconds(tokens) : 0;
  if (!measured_.load(std::memory_order_acquire)) return usual;
  const double own = line_.load().seconds(tokens);
  return std::abs(own - usual) <= kChance * usual ? usual : own;
}

}  // namespace baton::routing
