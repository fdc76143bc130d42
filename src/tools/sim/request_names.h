// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace baton::sim {

// A request that can be aborted by its name.
class Abortable {
 public:
  virtual ~Abortable() = default;
  virtual void abort_by_name() = 0;
};

// Role. SGLang's requests by their rid: no two have the same, and one is aborted together with all
//   whose names begin with its own.
// Confinement. One thread.
// Lifetime. Outlives the requests in it.
class RequestNames {
 public:
  Result<void> add(const std::string& name, Abortable& request);
  void remove(const std::string& name) { requests_.erase(name); }
  // The scheduler's abort; also used for requests whose connection has gone.
  void abort_all_like(std::string_view prefix);
  // POST /abort_request of a client: nothing happens if no request has exactly this name.
  void abort(const std::string& name);

 private:
  std::map<std::string, Abortable*, std::less<>> requests_;
};

}  // namespace baton::sim
