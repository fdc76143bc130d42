// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/trust.h"

#include <algorithm>

namespace baton::scheduling {

Trusted trust_in(const config::Trust& trust, std::string_view source) {
  if (!trust.routing_headers) return Trusted::No;
  if (trust.sources.empty()) return Trusted::Yes;
  const auto address = model::parse_address(source);
  if (!address) return Trusted::No;
  const bool known = std::ranges::any_of(
      trust.sources, [&address](const model::Network& one) { return one.contains(*address); });
  return known ? Trusted::Yes : Trusted::No;
}

}  // namespace baton::scheduling
