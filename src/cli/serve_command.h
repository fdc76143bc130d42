// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace baton::cli {

// The exit code of a process with wrong options, or one that could not start.
inline constexpr int kCannotStart = 2;

struct ServeOptions {
  std::string config_file;
  std::string ready_file;
  std::string admin_ready_file;
  bool check_only = false;
  std::vector<std::string> workers;
  std::string policy;
  std::map<std::string, std::string> settings;  // by key path, from flags
};

CLI::App* add_serve_command(CLI::App& root, ServeOptions& options);
// The process' exit code: 0, or 2 where it could not start.
int run_serve_command(const ServeOptions& options);

}  // namespace baton::cli
