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

struct RegisterOptions {
  std::string engine_url;
  std::string advertise_url;                    // empty: engine_url
  std::map<std::string, std::string> worker;    // by worker key, from flags of their own
  std::vector<std::string> further;             // key=value, for the other worker keys
  std::map<std::string, std::string> settings;  // by key path, from flags
  std::string ttl = "10s";
  std::string health_interval = "2s";
  std::string drain = "30s";
  std::string ready_file;
};

CLI::App* add_register_command(CLI::App& root, RegisterOptions& options);
// The process' exit code: 0 after a signal, or 2 if the options are wrong or contradict the engine.
int run_register_command(const RegisterOptions& options);

}  // namespace baton::cli
