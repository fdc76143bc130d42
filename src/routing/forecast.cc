// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "routing/forecast.h"

#include <algorithm>

namespace baton::routing {

double copy_share(double per_second, double holder_seconds, double holders) {
  const double uses = per_second * kCopySeconds;
  const double pressure = per_second * holder_seconds / std::max(1.0, holders);
  return std::max(1 / (1 + uses), 1 - pressure / kPressed);
}

}  // namespace baton::routing
