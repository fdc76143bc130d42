// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/classes.h"

#include <algorithm>

namespace baton::scheduling {

Classes::Classes(const config::Queue& config) : default_family_(config.default_family) {
  for (std::size_t i = 0; i < config.classes.size(); ++i) {
    const config::QueueClass& each = config.classes[i];
    if (each.family.empty()) {
      by_name_.emplace(each.name, i);
      continue;
    }
    const auto bucket = std::ranges::find(config.buckets, each.bucket, &config::QueueBucket::name);
    const std::uint64_t from = bucket == config.buckets.end() ? 0 : bucket->min_tokens;
    families_[each.family].emplace_back(from, i);
  }
  for (auto& [name, members] : families_) std::ranges::sort(members);
}

std::size_t Classes::resolve(std::string_view policy_class, std::uint64_t uncached_tokens) const {
  if (const auto named = by_name_.find(policy_class); named != by_name_.end()) return named->second;
  auto family = families_.find(policy_class);
  if (family == families_.end()) family = families_.find(default_family_);
  if (family == families_.end()) return 0;
  const Members& members = family->second;
  const auto above =
      std::ranges::upper_bound(members, uncached_tokens, {}, &Members::value_type::first);
  return above == members.begin() ? members.front().second : std::prev(above)->second;
}

}  // namespace baton::scheduling
