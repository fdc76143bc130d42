// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace baton::fuzz {

// How many comparisons the instrumented code has executed so far: the fuzzer's own instrumentation
// calls a function for each, which counts (executed_work.cc). Every loop of ours has at least one in
// each turn, so work that grows with the square of a text shows, the same on every machine. What
// libraries do without instrumentation (memchr, simdjson's first stage) does not count.
std::uint64_t executed_comparisons();

// Role. Ends the run, with the input kept, where a piece of work took more comparisons than its bytes
//   are worth.
// Lifetime. One piece of work.
class WorkBound {
 public:
  WorkBound(const char* what, std::size_t bytes)
      : what_(what), bytes_(bytes), begun_(executed_comparisons()) {}
  ~WorkBound() {
    const std::uint64_t done = executed_comparisons() - begun_;
    if (done <= kFixed + kPerByte * bytes_) return;
    std::fprintf(stderr, "too much work: %s took %llu comparisons for %zu bytes\n", what_,
                 static_cast<unsigned long long>(done), bytes_);
    std::abort();
  }
  WorkBound(const WorkBound&) = delete;
  WorkBound& operator=(const WorkBound&) = delete;

 private:
  // The dearest work whose size is that of the text takes up to 200 a byte (several functions in turn,
  // each of which parses it); what grows with the square takes thousands in texts of 64 KiB.
  static constexpr std::uint64_t kPerByte = 256;
  static constexpr std::uint64_t kFixed = 20'000;

  const char* what_;
  std::size_t bytes_;
  std::uint64_t begun_;
};

}  // namespace baton::fuzz
