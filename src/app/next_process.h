// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"

#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

namespace baton::app {

// The command of this process: the path of its program, as it was given, and its arguments. A newer
// program at that path is the next version; a link is not resolved before.
std::vector<std::string> own_command();

struct Handed {
  std::string name;
  int descriptor;
};

// Starts a program with these descriptors, as inheritance.h reads them, and standard input, output
// and error; with no others.
Result<pid_t> start_process(const std::vector<std::string>& command,
                            std::span<const Handed> handed);

// Detaches from the parent: a copy of this process goes on, and the collector of orphans, which is
// the service manager, becomes its parent. Call before there are other threads.
void become_orphan();

}  // namespace baton::app
