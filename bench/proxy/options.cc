// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "proxy/options.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <sys/resource.h>
#include <system_error>

namespace baton::bench {

Options::Options(int argc, char** argv) {
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    if (!name.starts_with("--") || i + 1 == argc)
      die(fmt::format("expected --name value at {}", name));
    values_.emplace(name.substr(2), argv[i + 1]);
  }
}

std::string Options::text(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) die(fmt::format("--{} is missing", name));
  return found->second;
}

std::uint64_t Options::number(const std::string& name) const {
  const std::string value = text(name);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size()) {
    die(fmt::format("--{} takes a number, not '{}'", name, value));
  }
  return number;
}

std::uint64_t Options::number_or(const std::string& name, std::uint64_t fallback) const {
  return values_.contains(name) ? number(name) : fallback;
}

void die(const std::string& what, int error) {
  fmt::print(stderr, "{}{}{}\n", what, error == 0 ? "" : ": ",
             error == 0 ? "" : std::strerror(error));
  std::exit(2);
}

void raise_open_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace baton::bench
