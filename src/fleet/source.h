// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/roster.h"

#include <string>

namespace baton::fleet {

struct SourceStatus {
  Origin origin;
  bool well = true;
  std::string detail;  // where it is not well: what is wrong, and what holds meanwhile
};

// Role. Somebody who knows of workers, and tells the fleet.
// Confinement. The control thread.
// Invariants. A source that fails leaves what it said standing, and says so.
class Source {
 public:
  virtual ~Source() = default;
  virtual void start() = 0;
  // What is under way ends soon; the fleet stays as it is.
  virtual void stop() = 0;
  virtual SourceStatus status() const = 0;
};

}  // namespace baton::fleet
