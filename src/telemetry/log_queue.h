// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "telemetry/metrics.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace baton::telemetry {

// Role. Takes log lines from any thread and writes them to a descriptor from a thread of its own,
//   so that a pipe whose reader stalls, or a slow disk, delays no thread that logs. The descriptor
//   keeps its mode: other processes may share it.
// Confinement. Any thread; `push` holds a lock for the copy of a line.
// Lifetime. The descriptor outlives it. At its end it waits a bounded time for what is left to be
//   written; a writer that is still held up then goes on alone until the process ends.
// Invariants. Never holds more than twice its capacity. Lines are written whole and in order; as
//   long as one fits PIPE_BUF, no other writer of the same pipe comes between. Each line is
//   written, or counted as dropped and told of by the notice that is written next.
class LogQueue {
 public:
  // The line that says how many were dropped, with its end.
  using Notice = std::function<std::string(std::uint64_t lines)>;
  struct Options {
    int descriptor;
    std::size_t capacity;                  // bytes
    std::chrono::milliseconds last_words;  // how long its end may take
  };

  LogQueue(Options options, Notice notice, std::shared_ptr<Counter> dropped);
  ~LogQueue();
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;

  // Never waits for the descriptor. Requires: the line has its end, and only there.
  void push(std::string_view line);
  // Waits until all that was pushed is written, for as long as its end may take at most.
  void flush();

 private:
  struct State;
  static void write_until_closed(State& state);

  std::shared_ptr<State> state_;
  std::thread writer_;
};

}  // namespace baton::telemetry
