// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "cli/admin_access.h"

#include <string>

namespace CLI {
class App;
}

namespace baton::cli {

struct ExplainOptions {
  AdminAccess access;
  std::string request;  // empty: which are remembered
  bool json = false;
};

CLI::App* add_explain_command(CLI::App& root, ExplainOptions& options);
// The process' exit code: 0; 1 where the router is not there or does not know the request; 2 where
// the command line makes no sense.
int run_explain_command(const ExplainOptions& options);

}  // namespace baton::cli
