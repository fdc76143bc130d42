// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/loadgen/options.h"

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace baton::cli {

struct BenchOptions {
  loadgen::Options load;
  bool compare = false;
  std::vector<std::string> results;  // to be compared
};

CLI::App* add_bench_command(CLI::App& root, BenchOptions& options);
// The process' exit code: 0; 1 where no request was answered; 2 where it cannot start.
int run_bench_command(const BenchOptions& options);

}  // namespace baton::cli
