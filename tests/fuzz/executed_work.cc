// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fuzz/executed_work.h"

#include <cstdint>

// The linker puts the functions below in the place of libFuzzer's (--wrap, in CMakeLists.txt), and
// they go on there as if they had been those: it tells comparisons apart by who called.

namespace {
std::uint64_t executed = 0;
}

namespace baton::fuzz {
std::uint64_t executed_comparisons() { return executed; }
}  // namespace baton::fuzz

// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {

void __real___sanitizer_cov_trace_cmp1(std::uint8_t, std::uint8_t);
[[clang::no_sanitize("coverage")]] void __wrap___sanitizer_cov_trace_cmp1(std::uint8_t left,
                                                                          std::uint8_t right) {
  ++executed;
  [[clang::musttail]] return __real___sanitizer_cov_trace_cmp1(left, right);
}

void __real___sanitizer_cov_trace_cmp2(std::uint16_t, std::uint16_t);
[[clang::no_sanitize("coverage")]] void __wrap___sanitizer_cov_trace_cmp2(std::uint16_t left,
                                                                          std::uint16_t right) {
  ++executed;
  [[clang::musttail]] return __real___sanitizer_cov_trace_cmp2(left, right);
}

void __real___sanitizer_cov_trace_cmp4(std::uint32_t, std::uint32_t);
[[clang::no_sanitize("coverage")]] void __wrap___sanitizer_cov_trace_cmp4(std::uint32_t left,
                                                                          std::uint32_t right) {
  ++executed;
  [[clang::musttail]] return __real___sanitizer_cov_trace_cmp4(left, right);
}

void __real___sanitizer_cov_trace_cmp8(std::uint64_t, std::uint64_t);
[[clang::no_sanitize("coverage")]] void __wrap___sanitizer_cov_trace_cmp8(std::uint64_t left,
                                                                          std::uint64_t right) {
  ++executed;
  [[clang::musttail]] return __real___sanitizer_cov_trace_cmp8(left, right);
}

void __real___sanitizer_cov_trace_const_cmp1(std::uint8_t, std::uint8_t);
[[clang::no_sanitize("coverage")]] void __wrap___sanitizer_cov_trace_const_cmp1(
    std::uint8_t left, std::uint8_t right) {
  ++executed;
  [[clang::musttail]] return __real___sanitizer_cov_trace_const_cmp1(left, right);
}

void __real___sanitizer_cov_trace_const_cmp2(std::uint16_t, std::uint16_t);
[[clang::no_sanitize("coverage")]] void __wrap___sanitizer_cov_trace_const_cmp2(
    std::uint16_t left, std::uint16_t right) {
  ++executed;
  [[clang::musttail]] return __real___sanitizer_cov_trace_const_cmp2(left, right);
}

void __real___sanitizer_cov_trace_const_cmp4(std::uint32_t, std::uint32_t);
[[clang::no_sanitize("coverage")]] void __wrap___sanitizer_cov_trace_const_cmp4(
    std::uint32_t left, std::uint32_t right) {
  ++executed;
  [[clang::musttail]] return __real___sanitizer_cov_trace_const_cmp4(left, right);
}

void __real___sanitizer_cov_trace_const_cmp8(std::uint64_t, std::uint64_t);
[[clang::no_sanitize("coverage")]] void __wrap___sanitizer_cov_trace_const_cmp8(
    std::uint64_t left, std::uint64_t right) {
  ++executed;
  [[clang::musttail]] return __real___sanitizer_cov_trace_const_cmp8(left, right);
}

void __real___sanitizer_cov_trace_switch(std::uint64_t, std::uint64_t*);
[[clang::no_sanitize("coverage")]] void __wrap___sanitizer_cov_trace_switch(std::uint64_t value,
                                                                            std::uint64_t* cases) {
  ++executed;
  [[clang::musttail]] return __real___sanitizer_cov_trace_switch(value, cases);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
