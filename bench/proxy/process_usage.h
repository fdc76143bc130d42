// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstdint>

namespace baton::bench {

// CPU time of all threads of a process so far, user and system, from /proc/PID/task/*/schedstat:
// nanoseconds, where getrusage and /proc/PID/stat may count in ticks. 0 if there is no such
// process.
std::uint64_t cpu_time_ns(int pid);

// Anonymous memory of a process that is resident now. 0 if there is no such process.
std::uint64_t anonymous_bytes(int pid);

}  // namespace baton::bench
