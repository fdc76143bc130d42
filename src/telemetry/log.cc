// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "telemetry/log.h"

#include "telemetry/escape.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <iterator>
#include <mutex>
#include <utility>

namespace baton::telemetry {
namespace {

using Buffer = fmt::memory_buffer;

constexpr std::array<std::string_view, 4> kLevelNames{"debug", "info", "warning", "error"};
constexpr std::array<std::string_view, 4> kAlignedNames{"debug", "info ", "warn ", "error"};
constexpr std::array kSpdlogLevels{spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                   spdlog::level::err};

class StringSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit StringSink(std::string& out) : out_(out) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    out_.append(line.data(), line.size());
  }
  void flush_() override {}

  std::string& out_;
};

std::unique_ptr<spdlog::logger> make_logger(spdlog::sink_ptr sink) {
  auto logger = std::make_unique<spdlog::logger>("baton", std::move(sink));
  // We format the line ourselves; spdlog adds the line's end and writes it in one go.
  logger->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      "%v", spdlog::pattern_time_type::utc, std::string("\n")));
  logger->set_level(spdlog::level::trace);
  return logger;
}

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
  append_escaped(out, text);
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
  append_escaped(out, event);
  std::string_view separator = "  ";
  for (const Field& field : fields) {
    if (!is_known(field)) continue;
    out.append(separator);
    append_escaped(out, field.name);
    out.push_back('=');
    append_value(out, Format::Human, field);
    separator = " ";
  }
}

}  // namespace

Logger::Logger(Format format, Level level)
    : format_(format),
      level_(level),
      sink_(make_logger(std::make_shared<spdlog::sinks::stderr_sink_mt>())) {}

Logger::Logger(Format format, Level level, std::string& out)
    : format_(format), level_(level), sink_(make_logger(std::make_shared<StringSink>(out))) {}

Logger::~Logger() = default;

void Logger::write(Level level, std::string_view event, Fields fields) {
  if (!enabled(level)) return;
  Buffer line;
  if (format_ == Format::Json) {
    append_json(line, level, event, fields);
  } else {
    append_human(line, level, event, fields);
  }
  sink_->log(kSpdlogLevels[static_cast<std::size_t>(level)],
             spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace baton::telemetry
