// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/locks/mutex.h"
#include "telemetry/metrics.h"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

namespace baton::telemetry {

class LogQueue;

enum class Format { Json, Human };
enum class Level { Debug, Info, Warning, Error };

// One named value of a log line.
struct Field {
  std::string_view name;
  // Nothing (std::monostate) is known: the field is left out.
  std::variant<std::monostate, std::string_view, std::int64_t, double, bool> value;
};

// Role. Structured log lines: `event` says what happened, fields say to whom. JSON for machines,
//   aligned text for people.
// Confinement. Any thread; a line is written whole. Logging never waits for the reader of the log:
//   lines that do not fit the queue are dropped, counted, and reported in a later line.
// Lifetime. Owned by the command, and outlives all that logs. Its end writes what is left, and
//   waits a second at most for it.
// Invariants. Control characters and quotes in values are escaped, so a value can never forge a
//   line.
class Logger {
 public:
  using Fields = std::initializer_list<Field>;

  // Writes to standard error.
  Logger(Format format, Level level);
  // Tests read what was logged: lines go to `out` instead.
  Logger(Format format, Level level, std::string& out);
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  bool enabled(Level level) const { return level >= level_; }
  void debug(std::string_view event, Fields fields = {}) { write(Level::Debug, event, fields); }
  void info(std::string_view event, Fields fields = {}) { write(Level::Info, event, fields); }
  void warning(std::string_view event, Fields fields = {}) { write(Level::Warning, event, fields); }
  void error(std::string_view event, Fields fields = {}) { write(Level::Error, event, fields); }

  void write(Level level, std::string_view event, Fields fields);
  // Before something else is written to standard error: waits like the end does.
  void flush();

  // Lines that were dropped.
  const Counter& dropped() const { return *dropped_; }

 private:
  Format format_;
  Level level_;
  std::shared_ptr<Counter> dropped_;  // shared with a queue that may outlive this
  std::unique_ptr<LogQueue> queue_;   // null: lines go to out_
  locks::Mutex out_mutex_;
  std::string* out_ PT_GUARDED_BY(out_mutex_) = nullptr;
};

}  // namespace baton::telemetry
