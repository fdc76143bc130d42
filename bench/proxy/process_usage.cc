// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "proxy/process_usage.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace baton::bench {

std::uint64_t cpu_time_ns(int pid) {
  std::uint64_t total_ns = 0;
  std::error_code error;
  const std::filesystem::directory_iterator tasks(fmt::format("/proc/{}/task", pid), error);
  if (error) return 0;
  for (const auto& task : tasks) {
    std::uint64_t run_ns = 0;
    if (std::ifstream(task.path() / "schedstat") >> run_ns) total_ns += run_ns;
  }
  return total_ns;
}

std::uint64_t anonymous_bytes(int pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string word; status >> word;) {
    std::uint64_t kib = 0;
    if (word == "RssAnon:" && status >> kib) return kib * 1024;
  }
  return 0;
}

}  // namespace baton::bench
