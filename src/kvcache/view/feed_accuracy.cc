// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/feed_accuracy.h"

#include <algorithm>

namespace baton::kvcache {
namespace {

// About the last twenty comparisons count.
constexpr double kFading = 0.95;
// Fewer than these are no ground for a judgement.
constexpr double kEnough = 6;
constexpr double kDoubtful = 0.5;
constexpr double kRightAgain = 0.2;

std::uint64_t distance(const FeedAccuracy::Sample& sample) {
  if (sample.reported < sample.least) return sample.least - sample.reported;
  return sample.reported > sample.most ? sample.reported - sample.most : 0;
}

}  // namespace

void FeedAccuracy::add(const Sample& sample) {
  const std::uint64_t tokens = std::max(sample.least, sample.reported);
  if (tokens == 0) return;
  ++samples_;
  wrong_ = wrong_ * kFading + static_cast<double>(distance(sample));
  all_ = all_ * kFading + static_cast<double>(tokens);
  weight_ = weight_ * kFading + 1;
  if (weight_ < kEnough) return;
  if (error() > kDoubtful) believed_ = false;
  if (error() < kRightAgain) believed_ = true;
}

double FeedAccuracy::error() const { return all_ > 0 ? wrong_ / all_ : 0; }

}  // namespace baton::kvcache
