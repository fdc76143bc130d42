// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/series.h"

#include <algorithm>

namespace baton::loadgen {

void Moment::merge(const Moment& other) {
  sent += other.sent;
  completed += other.completed;
  refused += other.refused;
  failed += other.failed;
  output_tokens += other.output_tokens;
  prompt_tokens += other.prompt_tokens;
  cached_tokens += other.cached_tokens;
  ttft.merge(other.ttft);
  itl.merge(other.itl);
}

Moment& Series::at(std::chrono::nanoseconds since_start) {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(since_start).count();
  const auto second = static_cast<std::size_t>(std::max<std::int64_t>(whole, 0));
  const auto index_now = [&] { return second / static_cast<std::size_t>(width_.count()); };
  while (index_now() >= kMost) halve();
  const std::size_t index = index_now();
  if (moments_.size() <= index) moments_.resize(index + 1);
  return moments_[index];
}

void Series::halve() {
  for (std::size_t i = 0; i < moments_.size(); ++i) {
    if (i % 2 == 1) {
      moments_[i / 2].merge(moments_[i]);
    } else if (i > 0) {
      moments_[i / 2] = std::move(moments_[i]);
    }
  }
  moments_.resize((moments_.size() + 1) / 2);
  width_ *= 2;
}

void Series::merge(const Series& other) {
  Series same = other;
  while (same.width_ < width_) same.halve();
  while (width_ < same.width_) halve();
  if (moments_.size() < same.moments_.size()) moments_.resize(same.moments_.size());
  for (std::size_t i = 0; i < same.moments_.size(); ++i) moments_[i].merge(same.moments_[i]);
}

}  // namespace baton::loadgen
