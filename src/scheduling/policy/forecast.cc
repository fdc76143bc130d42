// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/forecast.h"

#include <algorithm>

namespace baton::scheduling {

double copy_share(double per_second, double holder_seconds, double holders) {
  const double uses = per_second * kCopySeconds;
  // Between paying all, alone, and being paid for by very many.
  const double least = (1 - uses * kMostPaid / kWasteWeight) / (1 + uses);
  const double pressure = per_second * holder_seconds / std::max(1.0, holders);
  return std::max(least, 1 - pressure / kPressed);
}

}  // namespace baton::scheduling
