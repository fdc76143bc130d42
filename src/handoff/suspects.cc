// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/suspects.h"

#include <algorithm>
#include <functional>

namespace baton::handoff {

Suspects::Request Suspects::request_of(std::string_view body) {
  return {std::hash<std::string_view>()(body)};
}

std::size_t Suspects::ends(Request request, Time now) const {
  if (none()) return 0;
  const locks::Lock lock(mutex_);
  const auto found = ends_.find(request.hash);
  if (found == ends_.end() || now - found->second.back().when > kRemembered) return 0;
  return found->second.size();
}

std::size_t Suspects::ended(Request request, model::WorkerId worker, Time sent, Time now) {
  const locks::Lock lock(mutex_);
  forget_old(now);
  if (ends_.size() >= kMost && !ends_.contains(request.hash)) return 1;
  std::vector<End>& ends = ends_[request.hash];
  const auto same = [&](const End& end) { return end.worker == worker && sent <= end.when; };
  // More than a few say nothing new.
  if (std::ranges::none_of(ends, same) && ends.size() < 2 * kTooMany) ends.push_back({worker, now});
  size_.store(ends_.size(), std::memory_order_relaxed);
  return ends.size();
}

void Suspects::clear(Request request) {
  const locks::Lock lock(mutex_);
  ends_.erase(request.hash);
  size_.store(ends_.size(), std::memory_order_relaxed);
}

void Suspects::forget_old(Time now) {
  std::erase_if(ends_,
                [now](const auto& one) { return now - one.second.back().when > kRemembered; });
  size_.store(ends_.size(), std::memory_order_relaxed);
}

}  // namespace baton::handoff
