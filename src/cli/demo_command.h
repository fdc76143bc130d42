// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace baton::cli {

struct DemoOptions {
  std::string listen = "127.0.0.1:8080";
  std::string admin = "127.0.0.1:8081";
};

CLI::App* add_demo_command(CLI::App& root, DemoOptions& options);
// The process' exit code: 0, or 2 where it could not start.
int run_demo_command(const DemoOptions& options);

}  // namespace baton::cli
