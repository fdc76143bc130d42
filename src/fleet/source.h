// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/roster.h"

#include <string>

namespace baton::fleet {

struct SourceStatus {
  Origin origin;
  bool well = true;
  std::string detail;  // if it is not well: the problem, and what holds meanwhile
};

// Role. A source of announcements: knows of workers, and tells the fleet.
// Confinement. The control thread.
// Invariants. A source that fails keeps its announcements, and reports the failure.
class Source {
 public:
  virtual ~Source() = default;
  virtual void start() = 0;
  // Running operations end soon; the fleet stays as it is.
  virtual void stop() = 0;
  virtual SourceStatus status() const = 0;
};

}  // namespace baton::fleet
