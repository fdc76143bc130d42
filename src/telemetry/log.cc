// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "telemetry/log.h"

#include "libs/scan/json_escape.h"
#include "telemetry/log_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <iterator>
#include <unistd.h>

namespace baton::telemetry {
namespace {

using Buffer = fmt::memory_buffer;

constexpr std::array<std::string_view, 4> kLevelNames{"debug", "info", "warning", "error"};
constexpr std::array<std::string_view, 4> kAlignedNames{"debug", "info ", "warn ", "error"};

// Some thousand lines: what is logged while a reader catches its breath.
constexpr std::size_t kQueueBytes = std::size_t{1} << 20;
// At the end of the process, for a reader that has stalled.
constexpr std::chrono::seconds kLastWords{1};

void append_time(Buffer& out) {
  using namespace std::chrono;
  const auto now = floor<milliseconds>(system_clock::now());
  const auto day = floor<days>(now);
  const year_month_day date(day);
  const hh_mm_ss time(now - day);
  fmt::format_to(std::back_inserter(out), "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
                 static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                 static_cast<unsigned>(date.day()), time.hours().count(), time.minutes().count(),
                 time.seconds().count(), time.subseconds().count());
}

void append_quoted(Buffer& out, std::string_view text) {
  out.push_back('"');
  scan::append_escaped(out, text, scan::Escape::OneLine);
  out.push_back('"');
}

// Bare words need no quotes: a person reads model=demo faster than model="demo".
bool is_bare(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return c > ' ' && c < 0x7f && c != '"' && c != '\\' && c != '=';
  });
}

void append_value(Buffer& out, Format format, std::string_view value) {
  if (format == Format::Human && is_bare(value)) {
    out.append(value);
  } else {
    append_quoted(out, value);
  }
}

void append_value(Buffer& out, Format, std::int64_t value) {
  fmt::format_to(std::back_inserter(out), "{}", value);
}

void append_value(Buffer& out, Format format, double value) {
  if (format == Format::Json && !std::isfinite(value)) {
    out.append(std::string_view("null"));  // JSON has no word for it
  } else {
    fmt::format_to(std::back_inserter(out), "{:.3f}", value);
  }
}

void append_value(Buffer& out, Format, bool value) {
  out.append(std::string_view(value ? "true" : "false"));
}

void append_value(Buffer&, Format, std::monostate) {}

bool is_known(const Field& field) { return !std::holds_alternative<std::monostate>(field.value); }

void append_value(Buffer& out, Format format, const Field& field) {
  std::visit([&](const auto& value) { append_value(out, format, value); }, field.value);
}

void append_json(Buffer& out, Level level, std::string_view event, Logger::Fields fields) {
  out.append(std::string_view("{\"ts\":\""));
  append_time(out);
  fmt::format_to(std::back_inserter(out),
                 "\",\"level\":\"{}\",\"event\":", kLevelNames[static_cast<std::size_t>(level)]);
  append_quoted(out, event);
  for (const Field& field : fields) {
    if (!is_known(field)) continue;
    out.push_back(',');
    append_quoted(out, field.name);
    out.push_back(':');
    append_value(out, Format::Json, field);
  }
  out.push_back('}');
}

void append_human(Buffer& out, Level level, std::string_view event, Logger::Fields fields) {
  append_time(out);
  fmt::format_to(std::back_inserter(out), " {} ", kAlignedNames[static_cast<std::size_t>(level)]);
  scan::append_escaped(out, event, scan::Escape::OneLine);
  std::string_view separator = "  ";
  for (const Field& field : fields) {
    if (!is_known(field)) continue;
    out.append(separator);
    scan::append_escaped(out, field.name, scan::Escape::OneLine);
    out.push_back('=');
    append_value(out, Format::Human, field);
    separator = " ";
  }
}

// Whatever the level: what was dropped may have been of any.
std::string dropped_line(Format format, std::uint64_t lines) {
  std::string line;
  Logger log(format, Level::Warning, line);
  log.warning("log_lines_dropped", {{"lines", static_cast<std::int64_t>(lines)}});
  return line;
}

}  // namespace

Logger::Logger(Format format, Level level)
    : format_(format),
      level_(level),
      dropped_(std::make_shared<Counter>()),
      queue_(std::make_unique<LogQueue>(
          LogQueue::Options{
              .descriptor = STDERR_FILENO, .capacity = kQueueBytes, .last_words = kLastWords},
          [format](std::uint64_t lines) { return dropped_line(format, lines); }, dropped_)) {}

Logger::Logger(Format format, Level level, std::string& out)
    : format_(format), level_(level), dropped_(std::make_shared<Counter>()), out_(&out) {}

Logger::~Logger() = default;

void Logger::write(Level level, std::string_view event, Fields fields) {
  if (!enabled(level)) return;
  Buffer line;
  if (format_ == Format::Json) {
    append_json(line, level, event, fields);
  } else {
    append_human(line, level, event, fields);
  }
  line.push_back('\n');
  if (queue_) {
    queue_->push({line.data(), line.size()});
  } else {
    const locks::Lock lock(out_mutex_);
    out_->append(line.data(), line.size());
  }
}

void Logger::flush() {
  if (queue_) queue_->flush();
}

}  // namespace baton::telemetry
