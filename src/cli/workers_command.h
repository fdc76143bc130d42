// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "cli/admin_access.h"

#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace baton::cli {

struct WorkersOptions {
  AdminAccess access;
  bool json = false;
  bool watch = false;
  std::string action;  // add, drain, undrain or remove; empty: the table
  std::string worker;
  std::map<std::string, std::string> keys;  // of the worker to add, from flags
  std::vector<std::string> settings;        // further ones, KEY=VALUE
};

CLI::App* add_workers_command(CLI::App& root, WorkersOptions& options);
// The process' exit code: 0; 1 where the router is not there or refused; 2 where the command line
// makes no sense.
int run_workers_command(const WorkersOptions& options);

}  // namespace baton::cli
