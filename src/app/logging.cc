// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/logging.h"

namespace baton::app {
namespace {

telemetry::Format format_of(config::LogFormat format) {
  return format == config::LogFormat::Json ? telemetry::Format::Json : telemetry::Format::Human;
}

telemetry::Level level_of(config::LogLevel level) {
  switch (level) {
    case config::LogLevel::Debug:
      return telemetry::Level::Debug;
    case config::LogLevel::Info:
      return telemetry::Level::Info;
    case config::LogLevel::Warning:
      return telemetry::Level::Warning;
    case config::LogLevel::Error:
      break;
  }
  return telemetry::Level::Error;
}

}  // namespace

telemetry::Logger make_logger(const config::Log& log) {
  return {format_of(log.format), level_of(log.level)};
}

}  // namespace baton::app
