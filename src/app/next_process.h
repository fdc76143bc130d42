// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"

#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

namespace baton::app {

// How this process was started: the path of its program, as it was given, and its arguments. What
// stands at that path later is the next version, if there is one; a link is not followed before.
std::vector<std::string> own_command();

struct Handed {
  std::string name;
  int descriptor;
};

// Starts a program with these descriptors, as inheritance.h reads them, and standard input, output
// and error; with no others.
Result<pid_t> start_process(const std::vector<std::string>& command,
                            std::span<const Handed> handed);

// Leaves the parent: a copy of this process goes on, and whoever collects orphans is its parent,
// which is the service manager. Before there are other threads.
void become_orphan();

}  // namespace baton::app
