// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace baton::bench {

// Role. The command line `--name value …` of a benchmark program; the programs are started by
//   bench/proxy/run only, so anything unexpected ends the program with a message.
class Options {
 public:
  Options(int argc, char** argv);

  std::string text(const std::string& name) const;      // required
  std::uint64_t number(const std::string& name) const;  // required
  std::uint64_t number_or(const std::string& name, std::uint64_t fallback) const;

 private:
  std::map<std::string, std::string> values_;
};

// Prints what failed, with errno's text if `error` is not 0, and exits with status 2.
[[noreturn]] void die(const std::string& what, int error = 0);

// As many open files as the system lets us have.
void raise_open_file_limit();

}  // namespace baton::bench
