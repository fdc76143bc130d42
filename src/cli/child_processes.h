// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"

#include <string>
#include <sys/types.h>
#include <vector>

namespace baton::cli {

// Role. Runs copies of this program as children, and ends them with itself.
// Invariants. No child outlives this object; with --die-with-parent none outlives this process
//   either, however it ends.
class ChildProcesses {
 public:
  ChildProcesses() = default;
  ~ChildProcesses();
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  Result<void> start(const std::vector<std::string>& arguments);
  // A child has ended by itself.
  bool any_ended();

 private:
  std::vector<pid_t> children_;
};

}  // namespace baton::cli
