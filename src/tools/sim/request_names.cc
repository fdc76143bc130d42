// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/request_names.h"

#include <fmt/format.h>

namespace baton::sim {

Result<void> RequestNames::add(const std::string& name, Abortable& request) {
  if (requests_.try_emplace(name, &request).second) return {};
  return fail(Errc::InvalidRequest, fmt::format("Duplicate request ID detected: {}", name));
}

void RequestNames::abort_all_like(std::string_view prefix) {
  std::vector<Abortable*> found;
  for (auto at = requests_.lower_bound(prefix);
       at != requests_.end() && at->first.starts_with(prefix); ++at)
    found.push_back(at->second);
  for (Abortable* request : found) request->abort_by_name();
}

void RequestNames::abort(const std::string& name) {
  if (!name.empty() && requests_.contains(name)) abort_all_like(name);
}

}  // namespace baton::sim
