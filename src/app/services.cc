// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/services.h"

#include <chrono>
#include <random>
#include <utility>

namespace baton::app {
namespace {

std::chrono::milliseconds unix_time() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
}

}  // namespace

Services::Services(config::Config settings, telemetry::Logger& logger)
    : config(std::move(settings)),
      log(logger),
      fleet(config, metrics, log),
      ledger(metrics, log, config.log.requests),
      keys(config.api_keys),
      http_metrics(metrics),
      tickets(static_cast<std::uint64_t>(unix_time().count()), std::random_device()()),
      started_at(unix_time().count() / 1000),
      escaped_exceptions_(
          metrics.counter("baton_escaped_exceptions_total",
                          "Tasks that ended by an exception nobody caught: bugs.")) {
  // From the start, so that a model without requests counts none instead of being absent.
  for (const config::Model& model : config.models) ledger.metrics(model.name);
}

void Services::report(std::exception_ptr thrown) {
  escaped_exceptions_.add();
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& exception) {
    log.error("task_failed", {{"error", exception.what()}});
  } catch (...) {
    log.error("task_failed", {{"error", "unknown"}});
  }
}

}  // namespace baton::app
