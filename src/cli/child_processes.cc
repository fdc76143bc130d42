// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "cli/child_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <spawn.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

namespace baton::cli {

Result<void> ChildProcesses::start(const std::vector<std::string>& arguments) {
  std::vector<std::string> text{"baton"};
  text.insert(text.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& argument : text) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, argv.data(), environ);
  if (failed != 0) {
    return fail(Errc::Internal, fmt::format("cannot start a simulated worker: {}",
                                            std::generic_category().message(failed)));
  }
  children_.push_back(child);
  return {};
}

bool ChildProcesses::any_ended() {
  return std::ranges::any_of(children_, [](pid_t child) {
    siginfo_t info{};
    // Looks without collecting, so that the destructor still can.
    return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0;
  });
}

ChildProcesses::~ChildProcesses() {
  for (const pid_t child : children_) ::kill(child, SIGTERM);
  for (const pid_t child : children_) ::waitpid(child, nullptr, 0);
}

}  // namespace baton::cli
