// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace baton::sim {

// Whoever serves a request that can be aborted by its name.
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
  // What the scheduler does. Those whose connection has gone are aborted so, too.
  void abort_all_like(std::string_view prefix);
  // What a client's POST /abort_request does: nothing where no request has just this name.
  void abort(const std::string& name);

 private:
  std::map<std::string, Abortable*, std::less<>> requests_;
};

}  // namespace baton::sim
