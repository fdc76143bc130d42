// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http/token_bucket.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace baton::http {

Rate Rate::of(double per_second, std::size_t burst) {
  if (!(per_second > 0)) return {};
  const auto interval = std::max<std::int64_t>(1, std::llround(1e9 / per_second));
  const auto second = static_cast<std::int64_t>(std::ceil(per_second));
  const auto most = burst == 0 ? second : static_cast<std::int64_t>(burst);
  return {Duration(interval), Duration(interval * most)};
}

std::optional<Rate::Duration> TokenBucket::take(const Rate& rate, Clock::time_point now) {
  if (!rate.limited()) return std::nullopt;
  const Clock::time_point full_then = std::max(full_at_, now) + rate.interval;
  const Rate::Duration missing = full_then - now - rate.depth;
  if (missing.count() > 0) return missing;
  full_at_ = full_then;
  return std::nullopt;
}

}  // namespace baton::http
