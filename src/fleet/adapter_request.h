// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <string>

namespace baton::fleet {

// The adapter that a request is for.
struct AdapterRequest {
  std::string name;
  bool on_demand = false;  // a worker that has not loaded it does so when it is asked
};

}  // namespace baton::fleet
